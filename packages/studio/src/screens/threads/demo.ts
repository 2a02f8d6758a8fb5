import type { AgentSummary } from '@skein/server/client'

/** The tools by which the support desk of `npm start` is recognised. */
const DEMO_TOOLS = ['look_up_order', 'refunds', 'asset_subagent']

/** Messages to try, with a title each. */
const DEMO_MESSAGES: readonly (readonly [string, string])[] = [
  ['A label, by two models', 'Please write a label for the oak loom.'],
  ['A refund, to be approved', 'Please refund order O-7.'],
  ['A tool that fails', 'Where is order O-404?'],
]

/** First messages to suggest: those of the demo, for its support desk; none for any other agent. */
export function suggestionsFor({
  sides,
}: Pick<AgentSummary, 'sides'>): readonly (readonly [string, string])[] {
  const tools = new Set(sides.flatMap((side) => side.tools.map(({ name }) => name)))
  return DEMO_TOOLS.every((name) => tools.has(name)) ? DEMO_MESSAGES : []
}
