import type { AcceptedSettings, Effort } from '../../contract/accepted-settings.ts'
import { everything, ruleOf, type AcceptedRule } from './rule.ts'

/** The API refuses a smaller `budget_tokens`. */
const MIN_BUDGET = 1024

const upToMax: readonly Effort[] = ['low', 'medium', 'high', 'max']
const all: readonly Effort[] = ['low', 'medium', 'high', 'xhigh', 'max']

/** Claude before thinking. */
const plain: AcceptedSettings = everything

/** Claude 3.7 to 4.5: `thinking.budget_tokens`. Thinking excludes sampling and forced calls. */
const budget = (maxOutputTokens: number, more: { readonly withEffort?: boolean } = {}) =>
  ({
    ...everything,
    reasoning: {
      by: 'budget',
      min: MIN_BUDGET,
      max: maxOutputTokens - 1,
      canStop: true,
      ...more,
    },
    sampling: 'without_reasoning',
    forcedTools: 'without_reasoning',
    maxOutputTokens,
  }) satisfies AcceptedSettings

/** Claude from Opus 4.7: adaptive thinking alone, and no sampling. */
const adaptive = {
  ...everything,
  reasoning: { by: 'adaptive', efforts: all, off: 'never' },
  thinksByDefault: true,
  sampling: 'refused',
  maxOutputTokens: 128_000,
} as const satisfies AcceptedSettings

/** Claude that takes no forced call either: Opus 5.5, Fable 5.1 and later. */
const newest: AcceptedSettings = { ...adaptive, forcedTools: 'refused' }

/** What each Claude accepts. A number that follows a name without a digit after it is a version, not a date. */
export const claudeRules: readonly AcceptedRule[] = [
  {
    models: /sonnet-5-5(?!\d)/,
    accepts: { ...newest, reasoning: { ...adaptive.reasoning, off: 'between_tools' } },
    sources: 'abc',
  },
  { models: /opus-5-5(?!\d)|(?:fable|mythos)-5-[12](?!\d)/, accepts: newest, sources: 'adei' },
  {
    models: /(?:opus|sonnet)-5(?!-\d(?!\d))|haiku-5-5(?!\d)/,
    accepts: { ...adaptive, reasoning: { ...adaptive.reasoning, off: 'disabled' } },
    sources: 'afghi',
  },
  {
    models: /mythos-preview/,
    accepts: { ...adaptive, reasoning: { ...adaptive.reasoning, efforts: upToMax } },
    sources: 'ij',
  },
  { models: /(?:fable|mythos)-5(?!-\d(?!\d))/, accepts: adaptive, sources: 'aej' },
  {
    models: /opus-4-[78](?!\d)/,
    accepts: {
      ...adaptive,
      // Whether `disabled` is accepted is stated both ways; without `thinking` these models do not think.
      reasoning: { ...adaptive.reasoning, off: 'absent' },
      thinksByDefault: false,
      forcedTools: 'without_reasoning',
    },
    sources: 'aijk',
  },
  {
    models: /(?:opus|sonnet)-4-6(?!\d)/,
    accepts: {
      ...adaptive,
      reasoning: { by: 'adaptive', efforts: upToMax, takesBudget: true, off: 'disabled' },
      thinksByDefault: false,
      sampling: 'without_reasoning',
      oneSampler: true,
      forcedTools: 'without_reasoning',
    },
    sources: 'aijl',
  },
  {
    models: /opus-4-5(?!\d)/,
    accepts: { ...budget(64_000, { withEffort: true }), oneSampler: true },
    sources: 'aijl',
  },
  {
    models: /(?:sonnet|haiku)-4-5(?!\d)/,
    accepts: { ...budget(64_000), oneSampler: true },
    sources: 'ajlm',
  },
  { models: /opus-4-1(?!\d)/, accepts: { ...budget(32_000), oneSampler: true }, sources: 'ajlm' },
  { models: /sonnet-4(?:-0)?(?!-\d(?!\d))|3-7-sonnet/, accepts: budget(64_000), sources: 'ajm' },
  { models: /opus-4(?:-0)?(?!-\d(?!\d))/, accepts: budget(32_000), sources: 'ajm' },
  { models: /claude-3-5/, accepts: { ...plain, maxOutputTokens: 8192 }, sources: 'at' },
  { models: /claude-3-/, accepts: { ...plain, maxOutputTokens: 4096 }, sources: 'at' },
  { models: /claude-(?:v?[12]|instant)/, accepts: plain, sources: 'a' },
  { models: /(?:)/, accepts: { ...newest, maxOutputTokens: undefined }, sources: 'ad' },
]

/** Returns the settings that a Claude accepts; those of the newest for an unknown one. */
export function acceptedByClaude(modelId: string): AcceptedSettings {
  return ruleOf(claudeRules, modelId).accepts
}
