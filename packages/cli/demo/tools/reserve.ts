import { toolFrom, type ToolDefinition } from '@skein/runtime'

/** The second step of an exchange, which fails. */
const reserve: ToolDefinition = toolFrom(
  {
    name: 'reserve',
    description: 'Reserves the new lamp.',
    parameters: { type: 'object' },
    run(): string {
      throw new Error('the lamp is sold out')
    },
  },
  { risk: 'write_low_risk' },
)

export default reserve
