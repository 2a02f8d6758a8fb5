import { type AgentDefinition, defineAgent } from '@skein/runtime'

/** A child that writes. */
const crew: AgentDefinition = defineAgent({
  name: 'crew',
  type: 'dual_ai',
  exposeAsTool: true,
  toolDescription: 'Does what it is asked for.',
  sideA: { prompt: 'worker' },
  sideB: { prompt: 'reviewer', sessionStop: { name: 'finish', messageProperty: 'text' } },
})

export default crew
