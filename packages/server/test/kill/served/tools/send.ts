import { type Outside, outside } from '../outside.ts'
import type { RunnableTool } from '@skein/runtime'

const send: RunnableTool<Outside> = outside('send')

export default send
