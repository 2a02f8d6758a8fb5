import { toolFrom, type ToolDefinition } from '@skein/runtime'

const text = { type: 'string' } as const

/** Waits for an approval; what it returns is as hostile as what it was given. */
const pay: ToolDefinition = toolFrom(
  {
    name: 'pay',
    description: 'Pays.',
    parameters: {
      type: 'object',
      properties: { amount: { type: 'number' }, note: text, to: text },
    },
    run: (args) => args,
  },
  {
    risk: 'write_high_risk',
    rollback: () => ({ type: 'tool_call', target: 'echo', payload: {} }),
  },
)

export default pay
