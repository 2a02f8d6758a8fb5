import { defineAgent, type AgentDefinition } from '@skein/runtime'

const failing: AgentDefinition = defineAgent({ name: 'failing', sideA: { prompt: 'failing' } })

export default failing
