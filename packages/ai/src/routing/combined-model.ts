import type { Modality } from '../contract/error.ts'
import { createProvider, type ModelReference } from '../contract/provider.ts'
import { embeddingHandler } from './combined-embedding.ts'
import { imageHandler } from './combined-image.ts'
import { llmHandler } from './combined-llm.ts'
import type { Combination } from './member-policy.ts'

/** One model reference that stands for several, in every modality that all of them have. */
export function combinedModel(combination: Combination): ModelReference {
  const { name, members } = combination
  const has = (modality: Modality): boolean =>
    members.every(({ reference }) => reference.provider.handlers[modality])
  const provider = createProvider({
    name,
    ...(has('llm') && { llm: llmHandler(combination) }),
    ...(has('embedding') && { embedding: embeddingHandler(combination) }),
    ...(has('image') && { image: imageHandler(combination) }),
  })
  return provider(members.map(({ label }) => label).join('|'))
}
