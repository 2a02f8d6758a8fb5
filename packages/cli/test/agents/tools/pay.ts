import { toolFrom, type ToolDefinition } from '@skein/runtime'

/** Waits for approval. */
const pay: ToolDefinition = toolFrom(
  {
    name: 'pay',
    description: 'Pays somebody.',
    parameters: { type: 'object', properties: { to: { type: 'string' } } },
    run: () => 'paid',
  },
  {
    risk: 'write_high_risk',
    rollback: () => ({ type: 'tool_call', target: 'look', payload: {} }),
  },
)

export default pay
