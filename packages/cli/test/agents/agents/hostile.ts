import { defineAgent, type AgentDefinition } from '@skein/runtime'

const hostile: AgentDefinition = defineAgent({ name: 'hostile', sideA: { prompt: 'hostile' } })

export default hostile
