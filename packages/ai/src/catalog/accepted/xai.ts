import type { AcceptedSettings, Effort } from '../../contract/accepted-settings.ts'
import { everything, ruleOf, type AcceptedRule } from './rule.ts'

/** A Grok that thinks refuses `stop`. */
const thinking = (efforts: readonly Effort[]): AcceptedSettings => ({
  ...everything,
  reasoning: { by: 'effort', efforts },
  thinksByDefault: true,
  stop: 'refused',
})

/** A Grok that thinks and refuses every `reasoning_effort`. */
const fixedReasoning: AcceptedSettings = { ...thinking([]), reasoning: { by: 'nothing' } }

/** What each Grok accepts. */
export const grokRules: readonly AcceptedRule[] = [
  {
    models: /non-reasoning|grok-(?:2|3(?!-mini)|beta|vision|voice)/,
    accepts: everything,
    sources: 'AB',
  },
  { models: /grok-3-mini/, accepts: thinking(['low', 'high']), sources: 'HI' },
  { models: /grok-4\.20-multi-agent/, accepts: thinking(['low', 'medium', 'high']), sources: 'A' },
  {
    models: /grok-4(?![.\d])|grok-4\.20|grok-code|grok-build/,
    accepts: fixedReasoning,
    sources: 'ACI',
  },
  { models: /grok-4\.3/, accepts: thinking(['none', 'low', 'medium', 'high']), sources: 'ADI' },
  { models: /(?:)/, accepts: thinking(['low', 'medium', 'high']), sources: 'EI' },
]

/** Returns the settings that a Grok accepts; those of the newest for an unknown one. */
export function acceptedByGrok(modelId: string): AcceptedSettings {
  return ruleOf(grokRules, modelId).accepts
}
