import { llm, type LLMInstance } from '@skein/ai'
import type { ResolvedSide } from '../definitions/resolved.ts'
import type { DrainContext } from './drain-context.ts'

/** The first model of a side, for what the runtime itself asks: no tools, no history. */
export function sideModel(
  { environment: { clock, ids }, signal }: DrainContext,
  { prompt }: ResolvedSide,
  options: { readonly system?: string } = {},
): LLMInstance {
  const { model, definition } = prompt.models[0]!
  return llm({
    model,
    signal,
    clock,
    ids,
    ...options,
    ...(definition?.config && { config: definition.config }),
    ...(definition?.providerOptions && { params: definition.providerOptions }),
  })
}
