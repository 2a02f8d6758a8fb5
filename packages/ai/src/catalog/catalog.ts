import type { ModelCatalog, ModelInfo, ModelPrices } from '../middleware/cost.ts'
import type { AcceptedSettings } from '../contract/accepted-settings.ts'
import { claudeRules } from './accepted/anthropic.ts'
import { geminiRules } from './accepted/google.ts'
import { mistralRules } from './accepted/mistral.ts'
import { gptRules } from './accepted/openai.ts'
import { ruleOf, type AcceptedRule } from './accepted/rule.ts'
import { acceptedSources, type AcceptedSource } from './accepted/sources.ts'
import { grokRules } from './accepted/xai.ts'
import { date, rows, sources } from './data.ts'

/** One generated row: name, context, output limit, input and output modalities, prices, sources. */
export type CatalogRow = readonly [
  name: string,
  contextTokens: number | null,
  outputTokens: number | null,
  input: string | null,
  output: string | null,
  prices: ModelPrices | null,
  sources: string,
]

/** The published data of one model. A value is null if none of the sources states it. */
export interface CatalogModel extends ModelInfo {
  readonly limits: { readonly contextTokens: number | null; readonly outputTokens: number | null }
  readonly modalities: {
    readonly input: readonly string[]
    readonly output: readonly string[]
  } | null
  readonly prices: ModelPrices | null
  /** The packages, with versions, that the entry was made from. */
  readonly sources: readonly string[]
  /** The settings that the model accepts; null for a vendor whose models have no rules. */
  readonly accepts: AcceptedSettings | null
  /** Where `accepts` comes from, and when it was read. */
  readonly acceptsSources: readonly AcceptedSource[]
}

/** The rules of each vendor that has some. Unknown models get the last rule, that of the newest models. */
const acceptedRules: Readonly<Record<string, readonly AcceptedRule[]>> = {
  anthropic: claudeRules,
  openai: gptRules,
  google: geminiRules,
  xai: grokRules,
  mistral: mistralRules,
}

function acceptedOf(name: string): Pick<CatalogModel, 'accepts' | 'acceptsSources'> {
  const slash = name.indexOf('/')
  const rules = acceptedRules[name.slice(0, slash)]
  if (!rules) return { accepts: null, acceptsSources: [] }
  const rule = ruleOf(rules, name.slice(slash + 1))
  const sourceList = [...rule.sources].flatMap((letter) => acceptedSources[letter] ?? [])
  return { accepts: rule.accepts, acceptsSources: sourceList }
}

/** The day on which the prices of the catalog were valid, e.g. `2026-11-15`. */
export const catalogDate: string = date

/**
 * Limits, modalities, prices and accepted settings of models, by `provider/model`, as published on `catalogDate`. Use it for
 * costs and budgets, with your own entries on top:
 *
 *     costMiddleware({ catalog: { ...modelCatalog, 'openai/gpt-5': { prices: { input: 1, output: 8 } } } })
 */
export const modelCatalog: Readonly<Record<string, CatalogModel>> & ModelCatalog = Object.freeze(
  Object.fromEntries(
    rows.map(([name, contextTokens, outputTokens, input, output, prices, letters]) => [
      name,
      {
        limits: { contextTokens, outputTokens },
        modalities:
          input === null || output === null
            ? null
            : { input: input.split(','), output: output.split(',') },
        prices,
        sources: [...letters].flatMap((letter) => sources[letter] ?? []),
        ...acceptedOf(name),
      },
    ]),
  ),
)
