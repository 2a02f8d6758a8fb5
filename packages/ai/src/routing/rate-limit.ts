import type { BoundEmbeddingModel, EmbeddingHandler } from '../embedding.ts'
import { invalidRequest, type Modality } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import type { BoundImageModel, ImageHandler, ImageUsage } from '../image.ts'
import type { AnyRequest } from '../contract/middleware.ts'
import {
  type BoundLLMModel,
  createProvider,
  type LLMHandler,
  type ModelReference,
} from '../contract/provider.ts'
import type { RateAdmission, RateLimiter } from './rate-limiter.ts'
import type { ContentBlock } from '../contract/content.ts'
import { resultText } from '../contract/result-text.ts'

/** The settings of `rateLimit`. */
export interface RateLimitOptions {
  readonly limiter: RateLimiter
  /** Returns the key whose limit a request counts against, e.g. the tenant. Default: one key for all. */
  readonly key?: (request: AnyRequest) => string
  /** Estimates the tokens to reserve before a request runs. Default: its characters divided by four. */
  readonly estimate?: (request: AnyRequest) => number
}

/**
 * Wraps a model so that every request waits until the limiter admits it: each inference of a tool
 * loop, each batch of embeddings. Tokens are reserved by estimate and replaced by the reported usage
 * once the answer is complete. The result is a model, so a `fallback` can use its next member when the
 * queue is full.
 *
 *     const limiter = new RateLimiter({ requests: 50, tokens: 30_000 })
 *     llm({ model: rateLimit(anthropic('claude-sonnet-4-5'), { limiter }) })
 */
export function rateLimit(model: ModelReference, options: RateLimitOptions): ModelReference {
  if (typeof options?.limiter?.admit !== 'function')
    throw invalidRequest(
      'rateLimit() was given no limiter.',
      { provider: model.provider.name, modality: 'llm' },
      'Pass { limiter: new RateLimiter({ requests: 50 }) }.',
    )
  const { llm, embedding, image } = model.provider.handlers
  const provider = createProvider({
    name: model.provider.name,
    llm: llm && limitedLLM(llm, options),
    embedding: embedding && limitedEmbedding(embedding, options),
    image: image && limitedImage(image, options),
  })
  return provider(model.modelId, model.options)
}

type Admit = (request: AnyRequest) => Promise<RateAdmission>

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
      const { modelId, provider, capabilities, wire, readData, identity, region } = bound
      return {
        modelId,
        provider,
        capabilities,
        wire,
        readData,
        identity,
        region,
        writeSettings: bound.writeSettings?.bind(bound),
        refuse: bound.refuse?.bind(bound),
        encode: bound.encode?.bind(bound),
        send: bound.send?.bind(bound),
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
              // Output was produced, so the reserved tokens count as used unless `message_stop`
              // reports the usage.
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
        edit:
          edit &&
          (async (request) =>
            settled(await admit(request), () => edit.call(bound, request), tokensOf)),
        stream:
          stream &&
          async function* (request) {
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
      }
    },
  }
}

function tokensOf({ usage }: { readonly usage?: ImageUsage }): number {
  return usage?.totalTokens ?? 0
}

/** Runs a request, then reports to the limiter how many tokens it used: 0 if it failed. */
async function settled<T>(
  admission: RateAdmission,
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

/**
 * Estimates the tokens of a request as its characters divided by four; media are not counted. Used
 * only for limits.
 */
function estimateTokens(request: AnyRequest): number {
  let characters = 0
  if ('prompt' in request) characters = request.prompt.length
  else if ('inputs' in request)
    characters = sum(request.inputs, (input) =>
      typeof input === 'string' ? input.length : ofBlock(input),
    )
  else
    characters =
      (request.system?.length ?? 0) +
      sum(request.messages, (message) => {
        switch (message.type) {
          case 'user':
            return sum<ContentBlock>(message.content, ofBlock)
          case 'assistant': {
            const calls = message.toolCalls ?? []
            return (
              sum<ContentBlock>(message.content, ofBlock) +
              sum(calls, (call) => JSON.stringify(call.arguments).length + call.toolName.length)
            )
          }
          case 'tool_result':
            return sum(message.results, ({ result }) => resultText(result).length)
          default:
            return message satisfies never
        }
      })
  return Math.ceil(characters / 4)
}

function ofBlock(block: ContentBlock): number {
  switch (block.type) {
    case 'text':
    case 'reasoning':
      return block.text.length
    case 'document':
      return block.source.type === 'text' ? block.source.data.length : 0
    case 'image':
    case 'audio':
    case 'video':
    case 'binary':
    case 'native':
      return 0
    default:
      return block satisfies never
  }
}

function sum<T>(items: readonly T[], count: (item: T) => number): number {
  return items.reduce((total, item) => total + count(item), 0)
}
