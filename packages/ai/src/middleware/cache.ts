import type { StreamEvent } from '../contract/event.ts'
import { fromBytesJson, toBytesJson } from '../contract/content.ts'
import type { Middleware, MiddlewareContext } from '../contract/middleware.ts'
import type { LLMRequest } from '../contract/provider.ts'
import { zeroUsage } from '../contract/turn.ts'
import { canonicalJson, type Clock, sha256Hex, systemClock } from '@skein/base'
import { messageToJSON } from '../contract/message-json.ts'

/** Keeps answers as text under a key: a map, a file, Redis. */
export interface CacheStore {
  get(key: string): string | undefined | Promise<string | undefined>
  /** `ttlMs` undefined: for as long as the store likes. */
  set(key: string, value: string, ttlMs?: number): void | Promise<void>
}

/** Settings of `cacheMiddleware`. */
export interface CacheOptions {
  readonly store: CacheStore
  /** How long an answer may be used again. Default: as long as the store keeps it. */
  readonly ttlMs?: number
  /** Answers are shared only within a scope, e.g. a tenant. Default: one for all. */
  readonly scope?: (request: LLMRequest) => string
  /** Told when the store fails; the call goes on without it. */
  readonly onStoreError?: (error: unknown) => void
}

/**
 * Answers an inference that was made before from a store. The key is made of all that shapes the
 * answer (model, address, messages, params, tools, structure), and of no secret. An answer is kept
 * when its turn has ended well; one of a turn that failed or waits for a deferred call is not.
 *
 * A turn that used the cache says so with the warning `cache_hit`; what came from there has no
 * usage, because nothing was spent.
 */
export function cacheMiddleware(options: CacheOptions): Middleware {
  const { store, ttlMs, scope, onStoreError = () => {} } = options
  /** What the running calls have to keep once they have ended. By context: one for each call. */
  const pending = new WeakMap<MiddlewareContext, Map<string, readonly StreamEvent[]>>()

  /** The kept events of an answer. A damaged entry counts as none; the answer made instead replaces it. */
  async function find(key: string): Promise<readonly StreamEvent[] | undefined> {
    try {
      const text = await store.get(key)
      if (text === undefined) return undefined
      const events = fromBytesJson(JSON.parse(text)) as readonly StreamEvent[] // written by `onTurn`
      if (Array.isArray(events) && isWhole(events)) return events
      throw new TypeError('The store gave something other than what was kept there.')
    } catch (error) {
      onStoreError(error)
      return undefined
    }
  }

  return {
    name: 'cache',
    async *wrapInference(request, next, context) {
      const key = cacheKey(request, context, scope?.(request))
      const known = key === undefined ? undefined : await find(key)
      if (known) {
        yield known.map((event) => {
          if (event.type !== 'message_stop') return event
          const { warnings = [] } = event.delta
          const hit = { code: 'cache_hit', message: 'This answer came from the cache.' }
          return {
            ...event,
            delta: { ...event.delta, usage: zeroUsage, warnings: [hit, ...warnings] },
          }
        })
        return
      }
      const seen: StreamEvent[] = []
      for await (const events of next(request)) {
        for (const event of events) seen.push(event)
        yield events
      }
      if (key !== undefined && isWhole(seen)) {
        const answers = pending.get(context) ?? new Map<string, readonly StreamEvent[]>()
        pending.set(context, answers.set(key, seen))
      }
    },
    async onTurn({ openCalls }, context) {
      if (openCalls.some(({ request }) => request)) return
      for (const [key, events] of pending.get(context) ?? []) {
        try {
          await store.set(key, JSON.stringify(toBytesJson(events)), ttlMs)
        } catch (error) {
          onStoreError(error)
        }
      }
    },
  }
}

/** Ended by the model itself, not by a limit, a filter or a cut. */
function isWhole(events: readonly StreamEvent[]): boolean {
  const last = events.at(-1)
  if (last?.type !== 'message_stop') return false
  const { stopReason } = last.delta
  return stopReason === 'end_turn' || stopReason === 'tool_use' || stopReason === 'stop_sequence'
}

/** Limits of `memoryCache`. */
export interface MemoryCacheOptions {
  /** Beyond it, what was not used for longest is dropped. Default 1000. */
  readonly maxEntries?: number
  /** Characters of all entries together. Default 64 million. */
  readonly maxCharacters?: number
  readonly clock?: Clock
}

interface Entry {
  readonly value: string
  readonly expiresAt: number
}

/** A cache in the memory of this process. `size` is the number of entries kept. */
export function memoryCache({
  maxEntries = 1000,
  maxCharacters = 64_000_000,
  clock = systemClock,
}: MemoryCacheOptions = {}): CacheStore & { readonly size: number } {
  /** In order of use, oldest first. */
  const entries = new Map<string, Entry>()
  let characters = 0

  function add(key: string, entry: Entry): void {
    entries.set(key, entry)
    characters += entry.value.length
  }

  function remove(key: string): void {
    characters -= entries.get(key)?.value.length ?? 0
    entries.delete(key)
  }

  return {
    get size() {
      return entries.size
    },
    get(key) {
      const entry = entries.get(key)
      if (!entry) return undefined
      remove(key)
      if (entry.expiresAt <= clock.now()) return undefined
      add(key, entry)
      return entry.value
    },
    set(key, value, ttlMs = Infinity) {
      remove(key)
      if (value.length > maxCharacters) return
      add(key, { value, expiresAt: clock.now() + ttlMs })
      for (const oldest of entries.keys()) {
        if (entries.size <= maxEntries && characters <= maxCharacters) return
        remove(oldest)
      }
    },
  }
}

/**
 * The same for requests that would be sent the same to the same model: ids and times of messages
 * do not count, nor do keys and headers. Undefined for a request that cannot be written as JSON.
 */
function cacheKey(
  { messages, system, params, tools, structure, config }: LLMRequest,
  { provider, modelId }: Pick<MiddlewareContext, 'provider' | 'modelId'>,
  scope = '',
): string | undefined {
  try {
    const text = canonicalJson({
      version: 1,
      scope,
      provider,
      modelId,
      baseUrl: config.baseUrl,
      system,
      messages: messages.map((message) => {
        const { id: _id, timestamp: _timestamp, ...content } = messageToJSON(message)
        return content
      }),
      params,
      tools: tools.map(({ name, description, parameters, metadata }) => ({
        name,
        description,
        parameters,
        metadata,
      })),
      structure,
    })
    return sha256Hex(text)
  } catch {
    // A parameter is not JSON, so it cannot be looked up. The wire decides whether it can be sent.
    return undefined
  }
}
