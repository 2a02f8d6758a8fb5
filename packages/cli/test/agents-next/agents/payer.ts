import { defineAgent, type AgentDefinition } from '@skein/runtime'

const payer: AgentDefinition = defineAgent({ name: 'payer', sideA: { prompt: 'payer' } })

export default payer
