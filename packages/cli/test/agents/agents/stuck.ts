import { defineAgent, type AgentDefinition } from '@skein/runtime'

const stuck: AgentDefinition = defineAgent({ name: 'stuck', sideA: { prompt: 'stuck' } })

export default stuck
