import { defineAgent, type AgentDefinition } from '@skein/runtime'

const limited: AgentDefinition = defineAgent({
  name: 'limited',
  sideA: { prompt: 'limited', maxSteps: 2 },
})

export default limited
