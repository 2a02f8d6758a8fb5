import { createHmac } from 'node:crypto'
import { lookup as systemLookup, type LookupAddress } from 'node:dns'
import { request as httpRequest } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { isIP, type LookupFunction } from 'node:net'
import { isPrivateAddress, sha256Hex, SkeinError, type Clock, type JsonObject } from '@skein/base'
import type { InterruptRecord } from '@skein/threads'
import type { StoredEvent, ThreadInfo, Timers } from '@skein/runtime'
import type { TimerHandle } from '@skein/runtime/serving'

/** One signed request to a receiver. */
export interface Post {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly allowsPrivate: boolean
  readonly signal: AbortSignal
}

interface WebhookQueueOptions {
  readonly clock: Clock
  readonly timers: Timers
  readonly allowsPrivate: boolean
  readonly onError: (error: unknown) => void
  /** Called when a message was delivered or given up. */
  readonly onSettled: () => void
  readonly post?: (post: Post) => Promise<number>
}

/** The waits between tries; after the last one a message is given up, about two days after the first try. */
const BACKOFF_MS: readonly number[] = [
  5_000, 30_000, 120_000, 600_000, 3_600_000, 14_400_000, 43_200_000, 86_400_000,
]
const MAX_AT_ONCE = 8
/** How many delivered messages are remembered, because events are read again when another node takes over. */
const MAX_SETTLED = 1_000
const GONE = 410

interface Delivery {
  readonly message: WebhookMessage
  tries: number
}

/**
 * Sends messages to one receiver, a few at a time; each message is repeated until it is accepted or given up.
 */
export class WebhookQueue {
  readonly webhook: Webhook
  /** Identifies the receiver in the settings. */
  readonly name: string
  /** All messages before this time (ms) were delivered or given up. */
  since = 0
  readonly #url: URL
  readonly #key: Uint8Array
  readonly #options: WebhookQueueOptions
  readonly #pending = new Map<string, Delivery>()
  readonly #ready: Delivery[] = []
  readonly #waits = new Set<TimerHandle>()
  readonly #abort = new AbortController()
  #running = 0
  /** The messages from `since` on that were delivered or given up, with their times, newest last. */
  settled: Map<string, number> = new Map()
  #isFinishing = false
  #finished: (() => void) | undefined

  constructor(webhook: Webhook, options: WebhookQueueOptions) {
    this.webhook = webhook
    this.name = sha256Hex(webhook.url).slice(0, 16)
    this.#url = new URL(webhook.url)
    this.#key = keyOf(webhook.secret)
    this.#options = options
  }

  get size(): number {
    return this.#pending.size
  }

  /** Adds a message if the receiver subscribes to it, and it is neither delivered nor pending. */
  add(message: WebhookMessage): void {
    const { id, type, timestamp } = message
    const isWanted = this.webhook.events.includes(type) && Date.parse(timestamp) >= this.since
    if (!isWanted || this.#pending.has(id) || this.settled.has(id)) return
    const delivery = { message, tries: 0 }
    this.#pending.set(id, delivery)
    this.#ready.push(delivery)
    this.#run()
  }

  /** Moves `since` forward to a time, or to the oldest pending message. Returns whether it moved. */
  moveOn(to: number): boolean {
    let since = to
    for (const { message } of this.#pending.values())
      since = Math.min(since, Date.parse(message.timestamp))
    if (since <= this.since) return false
    this.since = since
    for (const [id, at] of this.settled) if (at < since) this.settled.delete(id)
    return true
  }

  /** Sends nothing more, and resolves when nothing is being sent, or after a time. */
  async finish(ms: number): Promise<void> {
    this.#isFinishing = true
    if (this.#running === 0) return
    await new Promise<void>((resolve) => {
      this.#finished = resolve
      this.#waits.add(this.#options.timers.set(ms, resolve))
    })
  }

  stop(): void {
    this.#abort.abort()
    for (const wait of this.#waits) this.#options.timers.clear(wait)
  }

  #run(): void {
    while (this.#running < MAX_AT_ONCE && !this.#abort.signal.aborted && !this.#isFinishing) {
      const delivery = this.#ready.shift()
      if (!delivery) return
      this.#running += 1
      void this.#deliver(delivery).finally(() => {
        this.#running -= 1
        this.#run()
        if (this.#running === 0) this.#finished?.()
      })
    }
  }

  async #deliver(delivery: Delivery): Promise<void> {
    const { message } = delivery
    try {
      const status = await this.#send(message)
      if ((status >= 200 && status < 300) || status === GONE) return this.#settle(message)
      throw new Error(`The receiver of a webhook answered ${status}.`)
    } catch (error) {
      if (!this.#abort.signal.aborted) this.#retry(delivery, error)
    }
  }

  #send({ id, type, timestamp, data }: WebhookMessage): Promise<number> {
    const { clock, allowsPrivate, post: send = post } = this.#options
    const body = JSON.stringify({ type, timestamp, data })
    const headers = signedHeaders({ id, body, at: clock.now() }, this.#key)
    return send({ url: this.#url, headers, body, allowsPrivate, signal: this.#abort.signal })
  }

  #retry(delivery: Delivery, error: unknown): void {
    const waitMs = BACKOFF_MS[delivery.tries++]
    this.#options.onError(error)
    if (waitMs === undefined) return this.#settle(delivery.message)
    const wait = this.#options.timers.set(waitMs, () => {
      this.#waits.delete(wait)
      this.#ready.push(delivery)
      this.#run()
    })
    this.#waits.add(wait)
  }

  #settle({ id, timestamp }: WebhookMessage): void {
    this.#pending.delete(id)
    this.settled.set(id, Date.parse(timestamp))
    const [oldest] = this.settled.keys()
    if (this.settled.size > MAX_SETTLED && oldest !== undefined) this.settled.delete(oldest)
    this.#options.onSettled()
  }
}

/** The kinds of events that a webhook can report. */
export type WebhookEvent = 'approval.requested' | 'session.ended'

/** A receiver: its address, the events it subscribes to, and the secret that signs them. */
export interface Webhook {
  readonly url: string
  /** `whsec_` and 24 to 64 bytes in base64. */
  readonly secret: string
  readonly events: readonly WebhookEvent[]
  /** The tenants whose events are sent. Default: all. */
  readonly tenants?: readonly string[]
}

/** The message that is sent. All tries have the same id, so that a receiver can recognise repetitions. */
export interface WebhookMessage {
  readonly id: string
  readonly type: WebhookEvent
  /** The time of the event, ISO 8601. */
  readonly timestamp: string
  readonly data: JsonObject
}

/** Creates the message about an event of the log; undefined for events that webhooks do not report. */
export function toWebhookMessage(
  { id, rootId, tenant, owner, agent }: ThreadInfo,
  { seq, event }: StoredEvent,
): WebhookMessage | undefined {
  const where = { threadId: id, rootId, tenant, owner, agent, seq }
  const message = { id: `msg_${id}_${seq}`, timestamp: event.at }
  // A handoff is not reported: the session of the next agent gives the answer.
  if (event.type === 'session_end' && event.reason !== 'handoff') {
    const { sessionId, outcome, reason, message: text } = event
    const data = { ...where, sessionId, outcome, reason, ...(text !== undefined && { text }) }
    return { ...message, type: 'session.ended', data }
  }
  if (event.type === 'interrupt_opened' && isForApprovers(event.interrupt.kind)) {
    const { id: interruptId, toolCallId, kind } = event.interrupt
    const expires = event.expiresAt === undefined ? {} : { expiresAt: event.expiresAt }
    return {
      ...message,
      type: 'approval.requested',
      data: { ...where, interruptId, toolCallId, kind, ...expires },
    }
  }
  return undefined
}

/** Whether somebody who may approve has to answer. */
function isForApprovers(kind: InterruptRecord['kind']): boolean {
  return kind === 'approval' || kind === 'in_doubt'
}

const TIMEOUT_MS = 15_000

/** Posts JSON and returns the status. Redirects are not followed, and the body of the answer is not read. */
export function post({ url, headers, body, allowsPrivate, signal }: Post): Promise<number> {
  const host = url.hostname.replace(/^\[|\]$/g, '')
  // Numeric addresses are not resolved, so `publicLookup` does not check them.
  if (!allowsPrivate && isIP(host) && isPrivateAddress(host))
    return Promise.reject(privateAddress(host))
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest
  return new Promise((resolve, reject) => {
    const request = send(url, {
      method: 'POST',
      signal,
      timeout: TIMEOUT_MS,
      headers: {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
        'user-agent': 'skein-webhooks',
        ...headers,
      },
      lookup: allowsPrivate ? undefined : publicLookup,
    })
    request.on('response', (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    request.on('timeout', () => request.destroy(new Error('The receiver did not answer in time.')))
    request.on('error', reject)
    request.end(body)
  })
}

/**
 * Resolves host names to public addresses only. The connection itself uses this resolver, so that a name
 * cannot resolve to another address between the check and the use.
 */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  systemLookup(hostname, { ...options, all: true }, (error, addresses: LookupAddress[]) => {
    const [first] = addresses ?? []
    if (error || !first) return callback(error ?? privateAddress(hostname), '', 4)
    if (addresses.some(({ address }) => isPrivateAddress(address)))
      return callback(privateAddress(hostname), '', 4)
    if (options.all) callback(null, addresses)
    else callback(null, first.address, first.family)
  })
}

function privateAddress(hostname: string): SkeinError {
  return new SkeinError(`"${hostname}" is an address that webhooks are not sent to.`, {
    code: 'WEBHOOK_ADDRESS_PRIVATE',
    hint: 'Set allowPrivateAddresses if it is meant.',
  })
}

/** Decodes the key from a secret of the form `whsec_<base64>`. */
export function keyOf(secret: string): Uint8Array {
  const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
  if (secret.startsWith('whsec_') && key.length >= 24 && key.length <= 64) return key
  throw new SkeinError('The secret of a webhook is not `whsec_` and 24 to 64 bytes in base64.', {
    code: 'WEBHOOK_INVALID',
    hint: 'Make one with `echo whsec_$(openssl rand -base64 32)`.',
  })
}

/**
 * Creates the headers of Standard Webhooks. With the secret, a receiver can verify the origin of body and
 * time.
 */
export function signedHeaders(
  { id, body, at }: { readonly id: string; readonly body: string; readonly at: number },
  key: Uint8Array,
): Readonly<Record<string, string>> {
  const timestamp = Math.floor(at / 1000)
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${signature}`,
  }
}
