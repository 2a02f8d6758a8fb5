import type { LLMCapabilities } from '@skein/ai'
import { modelCatalog } from '@skein/ai/catalog'
import { findModel, type ModelCatalog, type ModelPrices } from '@skein/ai/middleware'
import { askedModels, sidesOf } from './related-definitions.ts'
import type { LoadedAgent } from './resolve-agent.ts'
import type { ResolvedModel } from '../resolved.ts'
import type { ModelDefinition } from '../model-definition.ts'

/**
 * The source of the prices that `defineModel` does not state: a catalog by `provider/model`, or a function
 * that is asked once for every model when the definitions are loaded. For models that the source does not
 * name, the published prices of `@skein/ai/catalog` are used; null says that the price is not known.
 */
export type PriceSource =
  ModelCatalog | ((provider: string, modelId: string) => ModelPrices | null | undefined)

/** Sets what is known about every model that an agent uses: its price, and which media it takes. */
export function fillModels(agents: readonly LoadedAgent[], source: PriceSource | undefined): void {
  for (const { resolved } of agents)
    for (const { prompt } of resolved ? sidesOf(resolved) : [])
      for (const model of askedModels(prompt)) {
        const { provider, modelId } = model.model
        const entry = findModel(modelCatalog, provider.name, modelId)
        const own =
          typeof source === 'object' ? findModel(source, provider.name, modelId) : undefined
        const ownPrices =
          typeof source === 'function' ? source(provider.name, modelId) : own?.prices
        const prices = ownPrices === undefined ? entry?.prices : ownPrices
        const open: { -readonly [Key in keyof ResolvedModel]: ResolvedModel[Key] } = model
        open.price = (model.definition && priceIn(model.definition)) ?? prices ?? undefined
        open.inputs = {
          ...inputsOf(entry?.modalities?.input),
          ...own?.capabilities,
          ...statedInputs(model.definition),
        }
      }
}

/**
 * Converts the published input types of a model. A model that takes images also takes PDFs, because vendors
 * show it the pages as images.
 */
function inputsOf(input: readonly string[] | undefined): Partial<LLMCapabilities> {
  if (!input) return {}
  const imageInput = input.includes('image')
  return {
    imageInput,
    documentInput: imageInput || input.includes('pdf'),
    audioInput: input.includes('audio'),
    videoInput: input.includes('video'),
  }
}

function statedInputs(definition: ModelDefinition | undefined): Partial<LLMCapabilities> {
  const { supportsImages: images, supportsAudio: audio } = definition?.capabilities ?? {}
  const inputPrices = images === undefined ? {} : { imageInput: images, documentInput: images }
  return audio === undefined ? inputPrices : { ...inputPrices, audioInput: audio }
}

/** Returns the price that a definition states; undefined unless it states both input and output. */
function priceIn(definition: ModelDefinition): ModelPrices | undefined {
  const { inputPrice: input, outputPrice: output, cachedPrice: cacheRead } = definition
  if (input === undefined || output === undefined) return undefined
  return { input, output, ...(cacheRead !== undefined && { cacheRead }) }
}
