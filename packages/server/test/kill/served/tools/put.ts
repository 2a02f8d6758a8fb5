import { type Outside, outside } from '../outside.ts'
import type { RunnableTool } from '@skein/runtime'

const put: RunnableTool<Outside> = outside('put', { idempotent: true })

export default put
