import type { JsonObject } from '@skein/base'
import type { BoundEmbeddingModel, EmbeddingRequest, EmbeddingResult } from '../embedding.ts'
import type { Batch } from './plan-batches.ts'

/** Embeds the batches, several at once; gives one result per batch, with indexes of the whole input. */
export async function* embedBatches(
  model: BoundEmbeddingModel,
  request: EmbeddingRequest,
  batches: readonly Batch[],
  concurrency = 4,
): AsyncGenerator<EmbeddingResult, void, undefined> {
  const running: Promise<EmbeddingResult>[] = []
  let next = 0
  const fill = (): void => {
    while (running.length < concurrency && next < batches.length) {
      const batch = embedBatch(model, request, batches[next++]!)
      batch.catch(() => {}) // awaited below in its turn, or not at all when one before it failed
      running.push(batch)
    }
  }
  for (fill(); running.length > 0; fill()) yield await running.shift()!
}

async function embedBatch(
  model: BoundEmbeddingModel,
  request: EmbeddingRequest,
  { start, end }: Batch,
): Promise<EmbeddingResult> {
  const result = await model.embed({ ...request, inputs: request.inputs.slice(start, end) })
  if (start === 0) return result
  const embeddings = result.embeddings.map((one) => ({ ...one, index: one.index + start }))
  return { ...result, embeddings }
}

/**
 * One result of several requests: embeddings in order, usage added. What each vendor said is kept in
 * its own namespace, of which there are several behind a fallback.
 */
export function joinResults(results: readonly EmbeddingResult[]): EmbeddingResult {
  if (results.length === 1) return results[0]!
  const metadata = joinMetadata(results)
  return {
    embeddings: results.flatMap(({ embeddings }) => embeddings),
    usage: { totalTokens: results.reduce((sum, { usage }) => sum + usage.totalTokens, 0) },
    ...(Object.keys(metadata).length > 0 && { metadata }),
  }
}

function joinMetadata(results: readonly EmbeddingResult[]): Record<string, JsonObject> {
  const said = new Map<string, JsonObject[]>()
  for (const { metadata = {} } of results)
    for (const [namespace, one] of Object.entries(metadata))
      if (!said.get(namespace)?.push(one)) said.set(namespace, [one])
  return Object.fromEntries(
    [...said].map(([namespace, list]) => [
      namespace,
      { ...Object.assign({}, ...list), responses: list },
    ]),
  )
}
