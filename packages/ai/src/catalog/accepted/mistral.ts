import type { AcceptedSettings, Effort } from '../../contract/accepted-settings.ts'
import { everything, ruleOf, type AcceptedRule } from './rule.ts'

const thinking = (efforts: readonly Effort[]): AcceptedSettings => ({
  ...everything,
  reasoning: { by: 'effort', efforts },
})

/** What each model of Mistral accepts. Models of before 2026, and dated models that are not listed, do not think. */
export const mistralRules: readonly AcceptedRule[] = [
  {
    models: /mistral-large-4/,
    accepts: { ...thinking(['low', 'medium', 'high']), thinksByDefault: true },
    sources: 'FG',
  },
  {
    models: /glm-5(?!-2)|glm-latest/,
    accepts: { ...thinking(['low', 'high', 'max']), thinksByDefault: true },
    sources: 'G',
  },
  {
    models: /magistral-(?:medium|small)(?:-latest)?$/,
    accepts: thinking(['none', 'high']),
    sources: 'G',
  },
  {
    models: /mistral-medium-(?:2604|3[-.]5|latest)|mistral-small-(?:2603|latest)|leanstral|glm-5-2/,
    accepts: thinking(['none', 'high']),
    sources: 'FG',
  },
  {
    models:
      /codestral|devstral|mini?stral|mixtral|pixtral|voxtral|mistral-(?:large|medium|small|tiny|nemo|saba|ocr|embed|code|7b)|magistral/,
    accepts: everything,
    sources: 'G',
  },
  { models: /(?:)/, accepts: thinking(['none', 'high']), sources: 'FG' },
]

/** Returns the settings that a model of Mistral accepts; those of the newest for an unknown one. */
export function acceptedByMistral(modelId: string): AcceptedSettings {
  return ruleOf(mistralRules, modelId).accepts
}
