import {
  canonicalJson,
  type Clock,
  type JsonObject,
  type JsonValue,
  sha256Hex,
  systemClock,
} from '@skein/base'
import type { StreamEvent } from '../contract/event.ts'
import { fromBytesJson, toBytesJson } from '../contract/bytes-json.ts'
import type { Middleware, MiddlewareContext } from '../contract/middleware.ts'
import type { LLMRequest } from '../contract/provider.ts'
import { identityOfConfig } from '../transport/config-identity.ts'
import { zeroUsage } from '../contract/turn.ts'
import { messageToJSON } from '../contract/message-json.ts'

/** Stores answers as text under a key, e.g. in a map, a file or Redis. */
export interface CacheStore {
  get(key: string): string | undefined | Promise<string | undefined>
  /** Without `ttlMs`, the store decides how long to keep the value. */
  set(key: string, value: string, ttlMs?: number): void | Promise<void>
}

/** Settings of `cacheMiddleware`. */
export interface CacheOptions {
  readonly store: CacheStore
  /** How long a stored answer may be used. Default: as long as the store keeps it. */
  readonly ttlMs?: number
  /**
   * Returns the scope of a request, e.g. its tenant; answers are reused only within a scope. Default: one
   * scope for all requests.
   */
  readonly scope?: (request: LLMRequest) => string
  /** Called when the store fails; the call continues without the cache. */
  readonly onStoreError?: (error: unknown) => void
}

/**
 * Answers a repeated inference from a store. The key contains everything that influences the answer (e.g.
 * model, address, API, members of a fallback, headers, messages, params, tools, structure), and no secret. An answer is stored when its turn has
 * ended successfully, and not when the turn failed or waits for a deferred call.
 *
 * A turn that used the cache has the warning `cache_hit`; cached answers have no usage, because no tokens
 * were spent.
 */
export function cacheMiddleware(options: CacheOptions): Middleware {
  const { store, ttlMs, scope, onStoreError = () => {} } = options
  /** The answers to store when a running call ends, by the call's context. */
  const pending = new WeakMap<MiddlewareContext, Map<string, readonly StreamEvent[]>>()

  /**
   * Returns the stored events of an answer. A damaged entry is treated
   * as missing, and the new answer replaces it.
   */
  async function find(key: string): Promise<readonly StreamEvent[] | undefined> {
    try {
      const text = await store.get(key)
      if (text === undefined) return undefined
      const events = fromBytesJson(JSON.parse(text)) as readonly StreamEvent[] // stored by `onTurn`
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
      const cachedEvents = key === undefined ? undefined : await find(key)
      if (cachedEvents) {
        yield cachedEvents.map((event) => {
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
      const newEvents: StreamEvent[] = []
      for await (const events of next(request)) {
        for (const event of events) newEvents.push(event)
        yield events
      }
      if (key !== undefined && isWhole(newEvents)) {
        const answers = pending.get(context) ?? new Map<string, readonly StreamEvent[]>()
        pending.set(context, answers.set(key, newEvents))
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

/** True if the model ended the answer itself, not a limit, a filter or a broken connection. */
function isWhole(events: readonly StreamEvent[]): boolean {
  const last = events.at(-1)
  if (last?.type !== 'message_stop') return false
  const { stopReason } = last.delta
  return stopReason === 'end_turn' || stopReason === 'tool_use' || stopReason === 'stop_sequence'
}

/** Limits of `memoryCache`. */
export interface MemoryCacheOptions {
  /** The largest number of entries; beyond it, the least recently used one is dropped. Default 1000. */
  readonly maxEntries?: number
  /** The largest number of characters of all entries together. Default 64 million. */
  readonly maxCharacters?: number
  readonly clock?: Clock
}

interface Entry {
  readonly value: string
  readonly expiresAt: number
}

/** A cache in the memory of this process. `size` is the number of stored entries. */
export function memoryCache({
  maxEntries = 1000,
  maxCharacters = 64_000_000,
  clock = systemClock,
}: MemoryCacheOptions = {}): CacheStore & { readonly size: number } {
  /** Ordered by last use, least recently used first. */
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
 * Returns the same key for requests that would send the same content to the same model, at the same address and
 * through the same API. Message ids, times and API keys are ignored; headers are part of the key (see
 * `identityOfConfig`). The key is a hash, so nothing in it can be read. Undefined for a request that cannot be
 * written as JSON.
 */
function cacheKey(
  { messages, system, params, settings, scopes, tools, structure, config }: LLMRequest,
  { provider, modelId, identity }: Pick<MiddlewareContext, 'provider' | 'modelId' | 'identity'>,
  scope = '',
): string | undefined {
  try {
    const text = canonicalJson({
      version: 2,
      scope,
      provider,
      modelId,
      model: identity,
      config: identityOfConfig(config),
      system,
      messages: messages.map((message) => {
        const { id: _id, timestamp: _timestamp, ...content } = messageToJSON(message)
        return content
      }),
      params,
      settings: settings as JsonObject | undefined, // settings are plain data
      scopes: scopes as unknown as JsonValue | undefined, // so are scopes, unless their params are not
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
    // A parameter is not JSON, so the request has no key and is not cached. Whether it can be sent is checked later.
    return undefined
  }
}
