import { type Outside, outside } from '../outside.ts'
import type { RunnableTool } from '@skein/runtime'

const undo: RunnableTool<Outside> = outside('undo', { idempotent: true, timeoutMs: undefined })

export default undo
