import { defineAgent, type AgentDefinition } from '@skein/runtime'

/** The only one that may touch money, and only with a person's consent. */
const refunds: AgentDefinition = defineAgent({
  name: 'refunds',
  title: 'Refunds',
  description: 'Pays money back after a person has approved it.',
  exposeAsTool: true,
  toolDescription: 'Hands the conversation over to the refunds desk.',
  sideA: { label: 'Refunds', prompt: 'refunds_desk' },
})

export default refunds
