import type { Clock } from '@skein/base'
import { gatewayError } from './answer-wire.ts'

/** The client that sent a request. */
export interface GatewayClient {
  /** Identifies the client for limits and in `onError`; never a secret. */
  readonly name: string
  readonly limits?: GatewayLimits
  /** The names of the models that this client may use. Default: all. */
  readonly models?: readonly string[]
}

/** A client with its key. */
export interface GatewayKey extends GatewayClient {
  readonly key: string
}

/** Finds the client of a key, e.g. in a database. Returns undefined for an unknown key. */
export type KeyLookup = (
  key: string,
) => GatewayClient | undefined | Promise<GatewayClient | undefined>

const everyone: GatewayClient = { name: 'everyone' }

/**
 * Returns a function that finds the client of a request by its key, in `authorization: Bearer …`,
 * `x-api-key`, `api-key` or `x-goog-api-key`, or in the query as `key`, where clients of Google may put it.
 */
export function clientFinder(
  keys: readonly GatewayKey[] | KeyLookup | undefined,
): (request: Request) => Promise<GatewayClient | undefined> {
  if (!keys) return async () => everyone
  let lookUp: KeyLookup
  if (typeof keys === 'function') lookUp = keys
  else {
    const clients = keys.map(({ key, ...client }) => ({ key, client }))
    lookUp = (given) => clients.filter(({ key }) => isSameKey(key, given)).at(-1)?.client
  }
  return async ({ headers, url }) => {
    const [, bearer] = /^bearer\s+(\S.*)/i.exec(headers.get('authorization') ?? '') ?? []
    const key =
      bearer ??
      headers.get('x-api-key') ??
      headers.get('api-key') ??
      headers.get('x-goog-api-key') ??
      new URL(url).searchParams.get('key')
    return key === null ? undefined : lookUp(key)
  }
}

/**
 * Compares every code unit, wherever the first difference is, so that the time of a look-up reveals nothing
 * about a key but its length.
 */
function isSameKey(key: string, given: string): boolean {
  let difference = key.length ^ given.length
  for (let index = 0; index < key.length; index++)
    difference |= key.charCodeAt(index) ^ given.charCodeAt(index % (given.length || 1))
  return difference === 0
}

/** The limits of one client. Omitted limits do not apply, except the default for the body size. */
export interface GatewayLimits {
  readonly requestsPerMinute?: number
  /** The most requests that may run at the same time. */
  readonly concurrency?: number
  /** The largest request body in bytes. Default 32 MiB. */
  readonly maxBodyBytes?: number
}

const MINUTE = 60_000
const DEFAULT_BODY_BYTES = 32 * 1024 * 1024
/** Above this many clients, the counters of clients without a request in the last minute are deleted. */
const MAX_REMEMBERED = 10_000

/** What one client has used of its limits: a token bucket that refills steadily, and its number of open requests. */
interface Account {
  tokens: number
  filledAt: number
  open: number
}

/** Enforces the limits per client. The counts are kept only in the memory of this process. */
export class ClientLimits {
  readonly #defaults: GatewayLimits
  readonly #clock: Clock
  readonly #accounts = new Map<string, Account>()

  constructor(defaults: GatewayLimits, clock: Clock) {
    this.#defaults = defaults
    this.#clock = clock
  }

  of({ limits }: GatewayClient): GatewayLimits & { readonly maxBodyBytes: number } {
    return { maxBodyBytes: DEFAULT_BODY_BYTES, ...this.#defaults, ...limits }
  }

  /** Admits a request or throws RATE_LIMITED. Call the returned function when the request has ended. */
  enter(client: GatewayClient): () => void {
    const { requestsPerMinute = Infinity, concurrency = Infinity } = this.of(client)
    const account = this.#accountOf(client.name, requestsPerMinute)
    if (account.open >= concurrency) {
      throw gatewayError(
        `No more than ${concurrency} requests may run at the same time.`,
        'RateLimited',
        {
          statusCode: 429,
          retryAfterMs: 1000,
        },
      )
    }
    if (account.tokens < 1) {
      const message = `No more than ${requestsPerMinute} requests a minute.`
      const retryAfterMs = Math.ceil(((1 - account.tokens) * MINUTE) / requestsPerMinute)
      throw gatewayError(message, 'RateLimited', { statusCode: 429, retryAfterMs })
    }
    account.tokens -= 1
    account.open += 1
    let isOpen = true
    return () => {
      if (isOpen) account.open -= 1
      isOpen = false
    }
  }

  #accountOf(name: string, perMinute: number): Account {
    const now = this.#clock.now()
    const account = this.#accounts.get(name)
    if (!account) return this.#open(name, { tokens: perMinute, filledAt: now, open: 0 })
    if (perMinute === Infinity) account.tokens = Infinity
    else {
      const refill = ((now - account.filledAt) * perMinute) / MINUTE
      account.tokens = Math.min(perMinute, account.tokens + refill)
    }
    account.filledAt = now
    return account
  }

  #open(name: string, account: Account): Account {
    if (this.#accounts.size >= MAX_REMEMBERED) this.#forgetQuiet(account.filledAt)
    this.#accounts.set(name, account)
    return account
  }

  /** Removes clients without a request for a minute: their bucket is full again, whatever its size. */
  #forgetQuiet(now: number): void {
    for (const [name, { open, filledAt }] of this.#accounts)
      if (open === 0 && now - filledAt >= MINUTE) this.#accounts.delete(name)
  }
}
