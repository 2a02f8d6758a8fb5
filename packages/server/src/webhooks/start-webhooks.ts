import { type Clock, isPlainObject, SkeinError, systemClock } from '@skein/base'
import {
  systemTimers,
  type Timers,
  type Runtime,
  type ThreadInfo,
  type Store,
} from '@skein/runtime'
import { type TimerHandle, type RuntimeNode } from '@skein/runtime/serving'
import { type Post } from './post.ts'
import { toWebhookMessage, type Webhook } from './webhook-message.ts'
import { WebhookQueue } from './webhook-queue.ts'

/** The receivers of webhooks, and where the progress of delivery is stored. */
export interface WebhooksOptions {
  readonly webhooks: readonly Webhook[]
  /**
   * Stores the time up to which everything was delivered; a store of the runtime can be used. Without it,
   * messages that were not delivered when the process ends are lost.
   */
  readonly settings?: Pick<Store, 'setting' | 'setSetting'>
  /** Also allows `http:` and addresses of this machine and its network. Default false. */
  readonly allowPrivateAddresses?: boolean
  readonly onError?: (error: unknown) => void
  readonly clock?: Clock
  readonly timers?: Timers
  readonly post?: (post: Post) => Promise<number>
}

/** Webhooks that are running. */
export interface Webhooks {
  /** Stops sending; undelivered messages are sent after the next start. */
  stop(): Promise<void>
  /** The number of messages that are not delivered yet. */
  readonly pending: number
}

/** The name of the setting that stores the delivery times. */
const SETTING = 'webhooks'
/**
 * An event may become visible up to this long after its timestamp, so events of this period are read again.
 */
const MARGIN_MS = 60_000
/** The number of undelivered messages at which reading the log pauses. */
const MAX_PENDING = 10_000
const MAX_REMEMBERED = 10_000
const PAGE = 500
/** How often the threads are listed again. Shorter than `MARGIN_MS`, so that no event of another node is missed. */
const RELIST_MS = 10_000
/** How long `stop` waits for messages that are being sent, so that another node does not send them again. */
const FINISH_MS = 3_000

/**
 * Sends webhooks about approvals and ended sessions. Messages are created from the log and sent at least
 * once: after a restart, messages whose delivery was not recorded are sent again with the same `webhook-id`.
 */
export async function startWebhooks(runtime: Runtime, options: WebhooksOptions): Promise<Webhooks> {
  const { node } = runtime
  const watcher = new Watcher(runtime, options)
  if (node) return startLed(runtime, node, options)
  await watcher.start()
  return watcher
}

/** Lets one node at a time send. The next node continues where the last one stopped. */
function startLed(runtime: Runtime, node: RuntimeNode, options: WebhooksOptions): Webhooks {
  let watcher: Watcher | undefined
  const led = node.lead('webhooks', {
    async start() {
      watcher = new Watcher(runtime, { settings: node.store, ...options }, true)
      await watcher.start()
      return watcher
    },
  })
  return {
    get pending() {
      return watcher?.pending ?? 0
    },
    stop: () => led.stop(),
  }
}

class Watcher implements Webhooks {
  readonly #runtime: Runtime
  readonly #options: WebhooksOptions
  readonly #clock: Clock
  readonly #queues: readonly WebhookQueue[]
  readonly #abort = new AbortController()
  /** The number of the last event that was read of each thread; the most recently read thread is last. */
  readonly #read = new Map<string, number>()
  /**
   * All events before this time have been read, except late ones (see `MARGIN_MS`); valid only once
   * `#hasCaughtUp` is true. Each scan of a thread sets this to the time of the first event that it read, not
   * the last, because events that other threads wrote in between may still be unread.
   */
  #scannedTo = 0
  #hasCaughtUp = false
  #saving: Promise<void> = Promise.resolve()
  #hasRoom: (() => void) | undefined
  #watching: Promise<void> = Promise.resolve()
  #scanning: Promise<void> = Promise.resolve()
  /**
   * Whether other nodes can take over. What was delivered is then recorded immediately, and the threads are listed
   * again and again, because what other nodes tell this node about changes may be lost.
   */
  readonly #isLed: boolean
  readonly #timers: Timers
  #relist: TimerHandle | undefined
  #isWriting = false

  constructor(runtime: Runtime, options: WebhooksOptions, isLed = false) {
    const {
      clock = systemClock,
      timers = systemTimers(clock),
      allowPrivateAddresses = false,
    } = options
    this.#runtime = runtime
    this.#options = options
    this.#clock = clock
    this.#isLed = isLed
    this.#timers = timers
    this.#queues = options.webhooks.map((webhook) => {
      const { protocol } = new URL(webhook.url)
      if (protocol !== 'https:' && !(protocol === 'http:' && allowPrivateAddresses))
        throw new SkeinError(`Webhooks are not sent to ${protocol} addresses.`, {
          code: 'WEBHOOK_INVALID',
          hint: 'Use https:, or set allowPrivateAddresses for a receiver on this machine.',
        })
      return new WebhookQueue(webhook, {
        clock,
        timers,
        allowsPrivate: allowPrivateAddresses,
        onError: (error) => options.onError?.(error),
        onSettled: () => this.#settled(),
        post: options.post,
      })
    })
  }

  get pending(): number {
    return this.#queues.reduce((sum, queue) => sum + queue.size, 0)
  }

  async start(): Promise<void> {
    const state = await this.#options.settings?.setting(SETTING)
    const starts = isPlainObject(state?.['since']) ? state['since'] : {}
    const deliveries = isPlainObject(state?.['delivered']) ? state['delivered'] : {}
    for (const queue of this.#queues) {
      const since = starts[queue.name]
      queue.since = typeof since === 'number' ? since : this.#clock.now()
      const position = deliveries[queue.name]
      if (isPlainObject(position))
        queue.settled = new Map(Object.entries(position) as [string, number][]) // as `#write` wrote it
    }
    // The progress is stored immediately, so that events from now on are sent even if this process ends early.
    await this.#write()
    // Changes are subscribed to before past events are read, so that no event is missed in between.
    const changes = this.#runtime.changes({ signal: this.#abort.signal })
    this.#watching = Promise.all([this.#watch(changes), this.#catchUp()]).then(
      () => undefined,
      (error: unknown) => this.#options.onError?.(error),
    )
  }

  async stop(): Promise<void> {
    this.#abort.abort()
    this.#hasRoom?.()
    if (this.#relist !== undefined) this.#timers.clear(this.#relist)
    // A message that is cut off while it is being sent would be sent again by the next node.
    if (this.#isLed) await Promise.all(this.#queues.map((queue) => queue.finish(FINISH_MS)))
    for (const queue of this.#queues) queue.stop()
    await this.#watching
    this.#save()
    await this.#saving
  }

  async #watch(changes: AsyncIterable<ThreadInfo>): Promise<void> {
    for await (const head of changes) {
      // A failed scan is repeated when the thread changes again, or after the next start.
      await this.#scan(head).catch((error: unknown) => this.#options.onError?.(error))
    }
  }

  async #catchUp(): Promise<void> {
    const since = Math.min(...this.#queues.map((queue) => queue.since))
    for (let offset = 0; !this.#abort.signal.aborted; offset += PAGE) {
      const query = { sort: 'activity', limit: PAGE, offset } as const
      const heads = await this.#runtime.threads.list(query)
      for (const head of heads) if (Date.parse(head.updatedAt) >= since) await this.#scan(head)
      const last = heads.at(-1)
      if (!last || heads.length < PAGE || Date.parse(last.updatedAt) < since) break
    }
    this.#hasCaughtUp = !this.#abort.signal.aborted
    if (this.#isLed && this.#hasCaughtUp)
      this.#relist = this.#timers.set(RELIST_MS, () => {
        this.#catchUp().catch((error: unknown) => this.#options.onError?.(error))
      })
  }

  /**
   * Scans a thread after all earlier scans have ended, because concurrent scans would send events of one
   * thread twice.
   */
  #scan(head: ThreadInfo): Promise<void> {
    const scan = this.#scanning.then(() => this.#scanNow(head))
    this.#scanning = scan.catch(() => undefined) // the caller of this scan gets the error
    return scan
  }

  async #scanNow(head: ThreadInfo): Promise<void> {
    const { tenant } = head
    const queues = this.#queues.filter(({ webhook }) => webhook.tenants?.includes(tenant) ?? true)
    if (queues.length === 0) return
    let after = this.#read.get(head.id) ?? 0
    let scannedTo: number | undefined
    while (after < head.seq && !this.#abort.signal.aborted) {
      const events = await this.#eventsOf(head.id, after)
      const [first] = events
      if (!first) break
      scannedTo ??= Date.parse(first.event.at)
      for (const stored of events) {
        const message = toWebhookMessage(head, stored)
        if (message) for (const queue of queues) queue.add(message)
      }
      after = events.at(-1)!.seq
      await this.#room()
    }
    this.#remember(head.id, after)
    this.#scannedTo = Math.max(this.#scannedTo, scannedTo ?? 0)
  }

  /** Reads events of a thread; returns none when the thread was removed meanwhile. */
  async #eventsOf(threadId: string, after: number): ReturnType<Runtime['threads']['events']> {
    try {
      return await this.#runtime.threads.events(threadId, { after, limit: PAGE })
    } catch (error) {
      if (SkeinError.is(error) && error.code === 'THREAD_NOT_FOUND') return []
      throw error
    }
  }

  #remember(threadId: string, seq: number): void {
    this.#read.delete(threadId)
    this.#read.set(threadId, seq)
    const [oldest] = this.#read.keys()
    if (this.#read.size > MAX_REMEMBERED && oldest !== undefined) this.#read.delete(oldest)
  }

  async #room(): Promise<void> {
    while (this.pending > MAX_PENDING && !this.#abort.signal.aborted)
      await new Promise<void>((resolve) => (this.#hasRoom = resolve))
  }

  #settled(): void {
    this.#hasRoom?.()
    this.#save()
  }

  #save(): void {
    if (!this.#hasCaughtUp) return
    const moves = this.#queues.map((queue) => queue.moveOn(this.#scannedTo - MARGIN_MS))
    // A write that is already waiting will also contain these changes.
    if ((!moves.includes(true) && !this.#isLed) || this.#isWriting) return
    this.#isWriting = this.#isLed
    this.#saving = this.#saving.then(() =>
      this.#write().catch((error: unknown) => this.#options.onError?.(error)),
    )
  }

  async #write(): Promise<void> {
    this.#isWriting = false
    const since = Object.fromEntries(this.#queues.map((queue) => [queue.name, queue.since]))
    const deliveries = Object.fromEntries(
      this.#queues.map(({ name, settled }) => [name, Object.fromEntries(settled)]),
    )
    const value = this.#isLed ? { since, delivered: deliveries } : { since }
    await this.#options.settings?.setSetting(SETTING, value)
  }
}
