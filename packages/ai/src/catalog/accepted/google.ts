import type { AcceptedSettings, Effort } from '../../contract/accepted-settings.ts'
import { everything, ruleOf, type AcceptedRule } from './rule.ts'

const budget = (
  min: number,
  max: number,
  { canStop = true, maxOutputTokens = 65_536 as number | undefined } = {},
): AcceptedSettings => ({
  ...everything,
  reasoning: { by: 'budget', min, max, canStop },
  thinksByDefault: true,
  maxOutputTokens,
})

/** A model with `thinkingLevel`; its thinking cannot be switched off. Gemini 3 still takes a budget instead. */
const levels = (efforts: readonly Effort[], takesBudget: boolean): AcceptedSettings => ({
  ...everything,
  reasoning: { by: 'effort', efforts, takesBudget },
  thinksByDefault: true,
})

const upToHigh: readonly Effort[] = ['low', 'medium', 'high']
const fromMinimal: readonly Effort[] = ['minimal', ...upToHigh]

/** What each model of Google accepts. */
export const geminiRules: readonly AcceptedRule[] = [
  { models: /omni/, accepts: everything, api: 'interactions', sources: 'J' },
  {
    models: /embedding|tts|-live|live-|gemma|claude|robotics/,
    accepts: everything,
    sources: 'x',
  },
  {
    models: /gemini-3-pro-image/,
    accepts: budget(128, 32_768, { canStop: false, maxOutputTokens: undefined }),
    sources: 'x',
  },
  {
    models: /gemini-3\.1-flash(?:-lite)?-image/,
    accepts: levels(['minimal', 'high'], false),
    sources: 's',
  },
  { models: /image|nano-banana/, accepts: everything, sources: 'x' },
  { models: /gemini-2\.5-pro/, accepts: budget(128, 32_768, { canStop: false }), sources: 'xy' },
  { models: /gemini-2\.5-flash-lite/, accepts: budget(512, 24_576), sources: 'y' },
  { models: /gemini-2\.5/, accepts: budget(1, 24_576), sources: 'xy' },
  {
    models: /gemini-(?:[12]\b|(?:pro|flash|ultra)-1|(?:pro|pro-vision|ultra)$)/,
    accepts: everything,
    sources: 'x',
  },
  { models: /gemini-3-pro/, accepts: levels(['low', 'high'], true), sources: 'yz' },
  { models: /gemini-3\.1-pro/, accepts: levels(upToHigh, true), sources: 'xz' },
  { models: /gemini-3(?:\.[0-6])?-flash/, accepts: levels(fromMinimal, true), sources: 'xyz' },
  { models: /gemini-3\.\d+-flash-lite/, accepts: levels(fromMinimal, true), sources: 'x' },
  { models: /gemini-3\.\d+-flash/, accepts: levels(upToHigh, true), sources: 'xz' },
  { models: /gemini-4-hydrogen/, accepts: levels([...upToHigh, 'xhigh'], false), sources: 'x' },
  { models: /(?:)/, accepts: levels(upToHigh, false), sources: 'xz' },
]

/** Returns the settings that a model of Google accepts; those of the newest for an unknown one. */
export function acceptedByGemini(modelId: string): AcceptedSettings {
  return ruleOf(geminiRules, modelId).accepts
}

/** Checks whether a model of Google is asked only through Interactions; `generateContent` refuses it. */
export function needsInteractions(modelId: string): boolean {
  return ruleOf(geminiRules, modelId).api === 'interactions'
}
