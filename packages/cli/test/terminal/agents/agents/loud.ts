import { defineAgent, type AgentDefinition } from '@skein/runtime'

const loud: AgentDefinition = defineAgent({ name: 'loud', sideA: { prompt: 'loud' } })

export default loud
