import { appendFileSync } from 'node:fs'
import { defineTool, type ToolDefinition } from '@skein/runtime'
import { z } from 'zod'

/** Dies before it has paid, if it is told to. */
const pay: ToolDefinition = defineTool({
  name: 'pay',
  description: 'Pays.',
  args: z.object({ to: z.string() }),
  risk: 'write_high_risk',
  rollback: () => ({ type: 'tool_call', target: 'look', payload: {} }),
  execute(_, { to }) {
    if (process.env['SKEIN_TEST_DIES'] !== undefined) process.kill(process.pid, 'SIGKILL')
    appendFileSync('paid.txt', `${to}\n`)
    return `paid ${to}`
  },
})

export default pay
