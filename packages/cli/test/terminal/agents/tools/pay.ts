import { defineTool, type ToolDefinition } from '@skein/runtime'
import { z } from 'zod'

const pay: ToolDefinition = defineTool({
  name: 'pay',
  description: 'Pays.',
  args: z.object({ amount: z.number(), note: z.string(), to: z.string() }),
  risk: 'write_high_risk',
  rollback: () => ({ type: 'tool_call', target: 'echo', payload: {} }),
  execute: (_, { note }) => note,
})

export default pay
