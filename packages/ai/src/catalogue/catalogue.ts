import type { ModelCatalog, ModelInfo, ModelPrices } from '../middleware/cost.ts'
import { date, rows, sources } from './data.ts'

/** One generated row: name, context, output limit, input and output modalities, prices, sources. */
export type CatalogueRow = readonly [
  name: string,
  contextTokens: number | null,
  outputTokens: number | null,
  input: string | null,
  output: string | null,
  prices: ModelPrices | null,
  sources: string,
]

/** The published data of one model. A value is null if none of the sources states it. */
export interface CatalogueModel extends ModelInfo {
  readonly limits: { readonly contextTokens: number | null; readonly outputTokens: number | null }
  readonly modalities: {
    readonly input: readonly string[]
    readonly output: readonly string[]
  } | null
  readonly prices: ModelPrices | null
  /** The packages, with versions, that the entry was made from. */
  readonly sources: readonly string[]
}

/** The day on which the prices of the catalogue were valid, e.g. `2026-11-15`. */
export const catalogueDate: string = date

/**
 * Limits, modalities and prices of models, by `provider/model`, as published on `catalogueDate`. Use it for
 * costs and budgets, with your own entries on top:
 *
 *     costMiddleware({ catalog: { ...modelCatalogue, 'openai/gpt-5': { prices: { input: 1, output: 8 } } } })
 */
export const modelCatalogue: Readonly<Record<string, CatalogueModel>> & ModelCatalog =
  Object.freeze(
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
        },
      ]),
    ),
  )
