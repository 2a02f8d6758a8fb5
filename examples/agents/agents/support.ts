import { defineAgent, type AgentDefinition } from '@skein/runtime'

/** The desk that everyone meets first. */
const support: AgentDefinition = defineAgent({
  name: 'support',
  title: 'Support desk',
  description: 'Finds orders, has labels written, and hands refunds over.',
  sideA: { label: 'Desk', prompt: 'support_desk' },
})

export default support
