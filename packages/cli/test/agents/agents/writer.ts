import { defineAgent, type AgentDefinition } from '@skein/runtime'

const writer: AgentDefinition = defineAgent({
  name: 'writer',
  type: 'ai_human',
  sideA: { prompt: 'writer' },
})

export default writer
