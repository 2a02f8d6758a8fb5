import type { JsonObject } from '@skein/base'
import type {
  BoundEmbeddingModel,
  EmbeddingHandler,
  EmbeddingInput,
  EmbeddingRequest,
  EmbeddingResult,
  EmbedOptions,
} from '../embedding.ts'
import { type ErrorOrigin, invalidRequest, invalidSetting } from '../contract/error.ts'

/**
 * Throws for the first input that is neither a text nor an image, or that is an image although the vendor
 * accepts none.
 */
export function checkInputs(
  inputs: readonly EmbeddingInput[],
  { imageInput }: EmbeddingHandler,
  origin: ErrorOrigin,
): void {
  inputs.forEach((input, index) => {
    const kind = kindOfInput(input)
    if (kind === 'text' || (kind === 'image' && imageInput)) return
    if (kind === 'image') {
      throw invalidRequest(`${origin.provider} cannot embed the image at input ${index}.`, origin)
    }
    const hint = 'An input is a string, a text block or an image block.'
    throw invalidRequest(`Input ${index} to embed is ${kind}.`, origin, hint)
  })
}

function kindOfInput(input: unknown): string {
  if (typeof input === 'string') return 'text'
  if (typeof input !== 'object' || input === null) return input === null ? 'null' : typeof input
  const { type, text } = input as { type?: unknown; text?: unknown }
  if (type === 'image' || (type === 'text' && typeof text === 'string')) return type
  return `an object of type ${JSON.stringify(type)}`
}

/** The range of inputs that one request sends. */
interface Batch {
  readonly start: number
  readonly end: number
  /** True for the last request of a chunk of `batchSize` inputs. */
  readonly endsChunk: boolean
}

/** Splits the inputs into chunks of the caller's size, and the chunks into requests within the vendor's limits. */
export function planBatches(
  inputs: readonly EmbeddingInput[],
  { maxBatchSize, maxBatchTokens = Infinity }: EmbeddingHandler,
  { batchSize, concurrency = 4 }: EmbedOptions,
  origin: ErrorOrigin,
): readonly Batch[] {
  if (batchSize !== undefined) checkCount('batchSize', batchSize, origin)
  checkCount('concurrency', concurrency, origin)
  const batches: Batch[] = []
  let start = 0
  let tokens = 0
  const closeBatch = (end: number): void => {
    const endsChunk = !batchSize || end % batchSize === 0 || end === inputs.length
    if (end > start) batches.push({ start, end, endsChunk })
    start = end
    tokens = 0
  }
  inputs.forEach((input, index) => {
    // A high estimate of the tokens: one per three ASCII characters, and one per character of other scripts.
    const text = typeof input === 'string' ? input : input.type === 'text' ? input.text : ''
    let others = 0
    for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 127) others++
    const size = Math.ceil((text.length - others) / 3) + others
    const isFull = index - start === maxBatchSize || tokens + size > maxBatchTokens
    if (isFull || (batchSize && index % batchSize === 0)) closeBatch(index)
    tokens += size
  })
  closeBatch(inputs.length)
  return batches
}

function checkCount(name: string, value: unknown, origin: ErrorOrigin): void {
  if (Number.isInteger(value) && (value as number) > 0) return
  throw invalidSetting(name, value, 'a whole number above 0', origin)
}

/**
 * Embeds the batches, several at the same time. Yields one result per batch, in order, with indexes into the whole
 * input.
 */
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
      // Avoids an unhandled rejection: the `await` below throws the error, but is not reached if an earlier
      // batch fails.
      batch.catch(() => {})
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
 * Joins the results of several requests: embeddings in order, usage added up. Metadata is kept per provider,
 * because with a fallback several providers may have answered.
 */
export function joinResults(results: readonly EmbeddingResult[]): EmbeddingResult {
  if (results.length === 1) return results[0]!
  const metadataLists = new Map<string, JsonObject[]>()
  for (const { metadata = {} } of results)
    for (const [namespace, one] of Object.entries(metadata))
      if (!metadataLists.get(namespace)?.push(one)) metadataLists.set(namespace, [one])
  const metadata = Object.fromEntries(
    [...metadataLists].map(([namespace, list]) => [
      namespace,
      { ...Object.assign({}, ...list), responses: list },
    ]),
  )
  return {
    embeddings: results.flatMap(({ embeddings }) => embeddings),
    usage: { totalTokens: results.reduce((sum, { usage }) => sum + usage.totalTokens, 0) },
    metadata: Object.keys(metadata).length > 0 ? metadata : undefined,
  }
}
