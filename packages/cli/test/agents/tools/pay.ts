import { appendFileSync } from 'node:fs'
import { toolFrom, type ToolDefinition } from '@skein/runtime'

/** Waits for approval. Dies before it has paid, if the test asks for it. */
const pay: ToolDefinition = toolFrom(
  {
    name: 'pay',
    description: 'Pays a customer.',
    parameters: { type: 'object', properties: { to: { type: 'string' } } },
    run() {
      if (process.env['SKEIN_TEST_DIES'] !== undefined) process.kill(process.pid, 'SIGKILL')
      appendFileSync('paid.txt', 'bob\n')
      return 'paid'
    },
  },
  {
    risk: 'write_high_risk',
    rollback: () => ({ type: 'tool_call', target: 'look', payload: {} }),
  },
)

export default pay
