import { sha256Hex, type Clock } from '@skein/base'
import type { Timers } from '@skein/runtime'
import type { TimerHandle } from '@skein/runtime/serving'
import { type Post, post, keyOf, signedHeaders } from './post.ts'
import type { Webhook, WebhookMessage } from './webhook-message.ts'

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
