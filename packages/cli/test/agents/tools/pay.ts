import { appendFileSync } from 'node:fs'
import { defineTool, type ToolDefinition } from '@skein/runtime'

/** Dies before it has paid, if it is told to. */
const pay: ToolDefinition = defineTool({
  name: 'pay',
  description: 'Pays.',
  risk: 'write_high_risk',
  rollback: () => ({ type: 'tool_call', target: 'look', payload: {} }),
  execute() {
    if (process.env['SKEIN_TEST_DIES'] !== undefined) process.kill(process.pid, 'SIGKILL')
    appendFileSync('paid.txt', 'bob\n')
    return 'paid'
  },
})

export default pay
