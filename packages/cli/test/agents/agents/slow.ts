import { defineAgent, type AgentDefinition } from '@skein/runtime'

const slow: AgentDefinition = defineAgent({ name: 'slow', sideA: { prompt: 'slow' } })

export default slow
