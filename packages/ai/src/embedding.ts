import { linkAbort, type Clock, type JsonObject, systemClock } from '@skein/base'
import { AbortRace } from './contract/abort-race.ts'
import type { ModelReference, Params, ProviderConfig } from './contract/provider.ts'
import type { ImageBlock, TextBlock } from './contract/content.ts'
import { checkInputs, embedBatches, joinResults, planBatches } from './embeddings/batches.ts'
import type { Middleware } from './contract/middleware.ts'
import { protectConfig } from './transport/config-secrets.ts'
import { ResultStream } from './turn/batch-reader.ts'
import { MiddlewareRun } from './turn/run-middleware.ts'
import { cancelledError, type ErrorOrigin, invalidRequest } from './contract/error.ts'

/** One input of an embedding call (UPP §13.3). */
export type EmbeddingInput = string | TextBlock | ImageBlock

/** One vector (UPP §13.4). */
export interface Embedding {
  readonly vector: readonly number[]
  readonly dimensions: number
  /** The position of the embedded input in the list of inputs. */
  readonly index: number
  readonly metadata?: Readonly<Record<string, JsonObject>>
}

/** The token usage of an embedding call. */
export interface EmbeddingUsage {
  readonly totalTokens: number
}

/** All vectors of a call (UPP §13.4). */
export interface EmbeddingResult {
  /** The vectors, in the order of the inputs. */
  readonly embeddings: readonly Embedding[]
  readonly usage: EmbeddingUsage
  readonly metadata?: Readonly<Record<string, JsonObject>>
}

/** One embedding request, as a provider gets it. */
export interface EmbeddingRequest {
  readonly inputs: readonly EmbeddingInput[]
  readonly params: Params
  readonly config: ProviderConfig
  readonly signal: AbortSignal
  /** Whether the inputs are documents or queries; some vendors have a parameter for it. */
  readonly inputType?: 'document' | 'query'
}

/** The embedding models of a provider. */
export interface EmbeddingHandler {
  /**
   * The largest number of inputs that the vendor accepts in one
   * request; longer input lists are sent in batches.
   */
  readonly maxBatchSize: number
  /** The largest number of tokens in one request, over all inputs; estimated from the text. */
  readonly maxBatchTokens?: number
  readonly imageInput: boolean
  bind(reference: ModelReference): BoundEmbeddingModel
}

/** One embedding model of one vendor. */
export interface BoundEmbeddingModel {
  readonly modelId: string
  readonly provider: string
  /** Sends one request to the vendor. */
  embed(request: EmbeddingRequest): Promise<EmbeddingResult>
}

/** The settings of an embedding instance: everything except its inputs (UPP §13.2). */
export interface EmbeddingOptions {
  readonly model: ModelReference
  readonly config?: ProviderConfig
  /** Sent to the vendor unchanged. */
  readonly params?: Params
  readonly middleware?: readonly Middleware[]
  readonly clock?: Clock
}

/** Settings of one call. */
export interface EmbedOptions {
  readonly signal?: AbortSignal
  readonly inputType?: 'document' | 'query'
  /** Added to the params of the instance, for this call. */
  readonly params?: Params
  /**
   * The number of inputs per request, or per chunk with `chunked`. If the vendor's limit is lower, the inputs
   * are sent in several requests.
   */
  readonly batchSize?: number
  /** The largest number of requests that run at the same time. Default 4. */
  readonly concurrency?: number
}

/** Settings of one call that reports its progress (UPP §13.5). */
export interface ChunkedEmbedOptions extends EmbedOptions {
  readonly chunked: true
}

/** One finished chunk of a chunked call, in input order. */
export interface EmbeddingProgress {
  readonly embeddings: readonly Embedding[]
  readonly completed: number
  readonly total: number
  /** The percentage of the inputs that have been embedded, from 0 to 100. */
  readonly percent: number
}

/** A running chunked call: iterate it, or wait for its `result`. */
export type EmbeddingStream = ResultStream<EmbeddingProgress, EmbeddingResult>

/** A model that turns texts into vectors, and images too if the vendor supports it (UPP §13.3). */
export interface EmbeddingInstance {
  readonly model: BoundEmbeddingModel
  /** Embeds all inputs and returns all vectors together; large inputs are sent in several requests. */
  embed(
    input: EmbeddingInput | readonly EmbeddingInput[],
    options?: EmbedOptions & { readonly chunked?: false },
  ): Promise<EmbeddingResult>
  /** Embeds the inputs chunk by chunk and reports the progress. */
  embed(
    input: EmbeddingInput | readonly EmbeddingInput[],
    options: ChunkedEmbedOptions,
  ): EmbeddingStream
}

/**
 * Binds an embedding model to its settings.
 *
 *     const embedder = embedding({ model: openai('text-embedding-3-small') })
 *     const { embeddings } = await embedder.embed(['a cat', 'a dog'])
 *     for await (const { percent, embeddings } of embedder.embed(documents, { chunked: true })) …
 */
export function embedding(options: EmbeddingOptions): EmbeddingInstance {
  return new Embedder(options)
}

type Inputs = EmbeddingInput | readonly EmbeddingInput[]
type AnyEmbedOptions = EmbedOptions & { readonly chunked?: boolean }

class Embedder implements EmbeddingInstance {
  readonly model: BoundEmbeddingModel
  readonly #handler: EmbeddingHandler
  readonly #options: EmbeddingOptions
  readonly #config: ProviderConfig
  readonly #origin: ErrorOrigin

  constructor(options: EmbeddingOptions) {
    const provider = options?.model?.provider
    this.#origin = { provider: provider?.name ?? 'skein', modality: 'embedding' }
    const handler = provider?.handlers?.embedding
    if (!handler) {
      const hint = 'Use a model of a provider that has them, e.g. openai, google or ollama.'
      throw invalidRequest(`${this.#origin.provider} has no embeddings.`, this.#origin, hint)
    }
    this.#handler = handler
    this.model = handler.bind(options.model)
    this.#options = options
    this.#config = protectConfig(options.config)
  }

  embed(input: Inputs, options?: EmbedOptions & { chunked?: false }): Promise<EmbeddingResult>
  embed(input: Inputs, options: ChunkedEmbedOptions): EmbeddingStream
  embed(input: Inputs, options: AnyEmbedOptions = {}): Promise<EmbeddingResult> | EmbeddingStream {
    const controller = new AbortController()
    const steps = this.#run(input, options, controller)
    const stream: EmbeddingStream = new ResultStream(steps, controller, this.#origin)
    return options.chunked ? stream : stream.result
  }

  /** Runs a call with and without `chunked`; without it, the caller reads all chunks and keeps only the result. */
  async *#run(
    input: Inputs,
    options: AnyEmbedOptions,
    controller: AbortController,
  ): AsyncGenerator<EmbeddingProgress, EmbeddingResult> {
    const unlink = linkAbort([options.signal], controller)
    const { signal } = controller
    const run = this.#middlewareRun(input, options, signal)
    const race = new AbortRace(signal, () => cancelledError(signal, this.#origin))
    try {
      await race.run(run.start())
      race.throwIfAborted()
      const request = run.context.request as EmbeddingRequest // an embedding call has an `EmbeddingRequest`
      checkInputs(request.inputs, this.#handler, this.#origin)
      const batches = planBatches(request.inputs, this.#handler, options, this.#origin)
      const results: EmbeddingResult[] = []
      let lastReport = 0
      const answers = embedBatches(this.model, request, batches, options.concurrency)
      for await (const result of race.each(answers)) {
        const { end, endsChunk } = batches[results.push(result) - 1]!
        if (!endsChunk) continue
        const embeddings = results.slice(lastReport).flatMap((one) => one.embeddings)
        const total = request.inputs.length
        yield { embeddings, completed: end, total, percent: (end / total) * 100 }
        lastReport = results.length
        // All batches have answered, so leaving the loop cancels no request.
        if (lastReport === batches.length) break
      }
      return await run.end(joinResults(results))
    } catch (error) {
      throw await run.fail(error)
    } finally {
      race.dispose()
      unlink()
      controller.abort() // cancels the remaining batches when one failed or the reader left
    }
  }

  #middlewareRun(input: Inputs, options: AnyEmbedOptions, signal: AbortSignal): MiddlewareRun {
    const { params = {}, middleware = [], clock = systemClock } = this.#options
    const { inputType } = options
    const inputs = Array.isArray(input) ? [...(input as EmbeddingInput[])] : [input]
    const request: EmbeddingRequest = {
      inputs: inputs as EmbeddingInput[], // `isArray` does not narrow a readonly list
      params: options.params ? { ...params, ...options.params } : params,
      config: this.#config,
      signal,
      inputType,
    }
    return new MiddlewareRun(middleware, {
      modality: 'embedding',
      model: this.model,
      streaming: options.chunked === true,
      request,
      clock,
    })
  }
}
