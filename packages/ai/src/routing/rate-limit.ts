import type { BoundEmbeddingModel, EmbeddingHandler } from '../embedding.ts'
import type { Modality } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { BoundImageModel, ImageHandler, ImageUsage } from '../image.ts'
import type { AnyRequest } from '../contract/middleware.ts'
import {
  createProvider,
  type BoundLLMModel,
  type LLMHandler,
  type ModelReference,
} from '../contract/provider.ts'
import { estimateTokens } from './estimate-tokens.ts'
import type { Admission, RateLimiter } from './rate-limiter.ts'

export interface RateLimitOptions {
  readonly limiter: RateLimiter
  /** Whose limit a request counts against, e.g. by tenant. Default: one for all. */
  readonly key?: (request: AnyRequest) => string
  /** Tokens to reserve for a request before it runs. Default: a fourth of its characters. */
  readonly estimate?: (request: AnyRequest) => number
}

/**
 * A model whose every request waits until the limiter lets it in: each inference of a tool loop,
 * each batch of embeddings. Tokens are reserved by estimate and counted as used once the answer
 * tells. It stands where a model does, so a fallback can go on with the next when the queue is full.
 *
 *     const limiter = new RateLimiter({ requests: 50, tokens: 30_000 })
 *     llm({ model: rateLimit(anthropic('claude-sonnet-4-5'), { limiter }) })
 */
export function rateLimit(model: ModelReference, options: RateLimitOptions): ModelReference {
  const { llm, embedding, image } = model.provider.handlers
  const provider = createProvider({
    name: model.provider.name,
    ...(llm && { llm: limitedLLM(llm, options) }),
    ...(embedding && { embedding: limitedEmbedding(embedding, options) }),
    ...(image && { image: limitedImage(image, options) }),
  })
  return provider(model.modelId, model.options)
}

type Admit = (request: AnyRequest) => Promise<Admission>

function admitter(
  { limiter, key = () => '', estimate = estimateTokens }: RateLimitOptions,
  { provider }: { readonly provider: string },
  modality: Modality,
): Admit {
  return (request) =>
    limiter.admit({
      key: key(request),
      tokens: estimate(request),
      signal: request.signal,
      origin: { provider, modality },
    })
}

function limitedLLM(handler: LLMHandler, options: RateLimitOptions): LLMHandler {
  return {
    get capabilities() {
      return handler.capabilities
    },
    bind(reference): BoundLLMModel {
      const bound = handler.bind(reference)
      const admit = admitter(options, bound, 'llm')
      const { modelId, provider, capabilities, wire } = bound
      return {
        modelId,
        provider,
        capabilities,
        ...(wire && { wire }),
        complete: async (request) => {
          const admission = await admit(request)
          return settled(
            admission,
            () => bound.complete(request),
            (events) => usedBy(events) ?? 0,
          )
        },
        async *stream(request) {
          const admission = await admit(request)
          let used = 0
          try {
            for await (const events of bound.stream(request)) {
              // Something was produced: until the end tells how much, what was reserved stands.
              used = usedBy(events) ?? admission.reserved
              yield events
            }
          } finally {
            admission.settle(used)
          }
        },
      }
    },
  }
}

function usedBy(events: readonly StreamEvent[]): number | undefined {
  const last = events.findLast(({ type }) => type === 'message_stop')
  return last?.type === 'message_stop' ? last.delta.usage.totalTokens : undefined
}

function limitedEmbedding(handler: EmbeddingHandler, options: RateLimitOptions): EmbeddingHandler {
  return {
    ...handler,
    bind(reference): BoundEmbeddingModel {
      const bound = handler.bind(reference)
      const { modelId, provider } = bound
      const admit = admitter(options, bound, 'embedding')
      return {
        modelId,
        provider,
        async embed(request) {
          const run = () => bound.embed(request)
          return settled(await admit(request), run, ({ usage }) => usage.totalTokens)
        },
      }
    },
  }
}

function limitedImage(handler: ImageHandler, options: RateLimitOptions): ImageHandler {
  return {
    bind(reference): BoundImageModel {
      const bound = handler.bind(reference)
      const { modelId, provider, capabilities, edit, stream } = bound
      const admit = admitter(options, bound, 'image')
      return {
        modelId,
        provider,
        capabilities,
        async generate(request) {
          return settled(await admit(request), () => bound.generate(request), tokensOf)
        },
        ...(edit && {
          async edit(request) {
            return settled(await admit(request), () => edit.call(bound, request), tokensOf)
          },
        }),
        ...(stream && {
          async *stream(request) {
            const admission = await admit(request)
            let used = 0
            try {
              for await (const event of stream.call(bound, request)) {
                if (event.type === 'end') used = tokensOf(event)
                yield event
              }
            } finally {
              admission.settle(used)
            }
          },
        }),
      }
    },
  }
}

function tokensOf({ usage }: { readonly usage?: ImageUsage }): number {
  return usage?.totalTokens ?? 0
}

/** A failed request has used nothing, as far as anyone can tell. */
async function settled<T>(
  admission: Admission,
  run: () => Promise<T>,
  used: (result: T) => number,
): Promise<T> {
  let tokens = 0
  try {
    const result = await run()
    tokens = used(result)
    return result
  } finally {
    admission.settle(tokens)
  }
}
