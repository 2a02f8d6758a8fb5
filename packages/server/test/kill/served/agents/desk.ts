import { type AgentDefinition, defineAgent } from '@skein/runtime'

const desk: AgentDefinition = defineAgent({ name: 'desk', sideA: { prompt: 'desk' } })

export default desk
