import { defineAgent, type AgentDefinition } from '@skein/runtime'

/** Two models: one writes, the other reviews until it accepts. Works alone or as someone's subagent. */
const assetSubagent: AgentDefinition = defineAgent({
  name: 'asset_subagent',
  title: 'Worker and reviewer',
  description: 'Writes a label and reviews it until it is good.',
  type: 'dual_ai',
  maxSessionTurns: 12,
  exposeAsTool: true,
  toolDescription: 'Has a short label written and reviewed.',
  sideA: { label: 'Worker', prompt: 'asset_worker' },
  sideB: {
    label: 'Reviewer',
    prompt: 'asset_reviewer',
    sessionStop: { name: 'approve_asset', messageProperty: 'asset' },
  },
})

export default assetSubagent
