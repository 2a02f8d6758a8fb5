import { createHash, randomUUID } from 'node:crypto'
import type { NodeLink, NodeNotice } from '@skein/runtime'
import pg from 'pg'
import { storeFailure } from './errors.ts'

/** Options of `postgresLink`. */
export interface PostgresLinkOptions {
  /** The address of the database, not of a pooler: LISTEN works only on a connection that stays the same. */
  readonly connectionString: string
  /** The schema of the store. Nodes of another store in the same database, with another schema, get no notices. */
  readonly schema?: string
}

type Listener = Parameters<NodeLink['start']>[0]

/** The longest payload of a notification: the server accepts less than 8000 bytes. */
const MOST_BYTES = 7500
/** How many notices may wait while there is no connection. More are dropped, and the other nodes learn that. */
const MOST_WAITING = 10_000
const PING_MS = 10_000
const POLL_MS = 1000

/**
 * Connects the nodes of a store by LISTEN and NOTIFY over one connection. Notices that come while a
 * statement runs are sent together. When this node has connected again, it calls its own `gap`, because
 * notices were lost; other nodes call theirs when a notice says that this node had to drop some.
 */
export function postgresLink(options: PostgresLinkOptions): NodeLink {
  return new DatabaseLink(options)
}

/**
 * A link for nodes that reach the database only through a transaction pooler. It sends no notices;
 * instead, every second it makes this node look up in the store everything that is being read.
 */
export function pollingLink({ everyMs = POLL_MS }: { readonly everyMs?: number } = {}): NodeLink {
  let timer: NodeJS.Timeout | undefined
  return {
    send() {},
    async start({ gap }) {
      timer ??= setInterval(gap, everyMs).unref()
    },
    async stop() {
      clearInterval(timer)
      timer = undefined
    },
  }
}

class DatabaseLink implements NodeLink {
  readonly #options: PostgresLinkOptions
  readonly #channel: string
  readonly #node = randomUUID()
  #listener: Listener | undefined
  #client: pg.Client | undefined
  /** The notices that wait to be sent, as JSON. A new notice replaces one of the same type about the same thread. */
  #waiting = new Map<string, string>()
  #hasDropped = false
  #isSending = false
  #isStopped = false
  #retry: NodeJS.Timeout | undefined
  #ping: NodeJS.Timeout | undefined
  #failures = 0

  constructor(options: PostgresLinkOptions) {
    this.#options = options
    const { schema = 'skein' } = options
    this.#channel = `skein_${createHash('sha256').update(schema).digest('hex').slice(0, 16)}`
  }

  send(notice: NodeNotice): void {
    if (this.#isStopped) return
    const key = `${notice.type} ${notice.threadId}`
    if (this.#waiting.size >= MOST_WAITING && !this.#waiting.has(key)) {
      this.#hasDropped = true
      return
    }
    // Moved to the end, so that the notices about a thread keep their order. If either notice has
    // `isDue`, the new one gets it.
    const before = this.#waiting.get(key)
    this.#waiting.delete(key)
    this.#waiting.set(key, encoded(notice, before))
    if (!this.#isSending) {
      this.#isSending = true
      queueMicrotask(() => void this.#flush())
    }
  }

  async start(listener: Listener): Promise<void> {
    this.#listener = listener
    await this.#connect()
  }

  async stop(): Promise<void> {
    if (!this.#isSending) await this.#flush()
    this.#isStopped = true
    clearTimeout(this.#retry)
    clearInterval(this.#ping)
    const client = this.#client
    this.#client = undefined
    await client?.end().catch(() => {})
  }

  /** Throws if the address is not valid, because no later attempt can succeed then. */
  #newClient(): pg.Client {
    try {
      return new pg.Client({
        connectionString: this.#options.connectionString,
        application_name: 'skein link',
        keepAlive: true,
        connectionTimeoutMillis: 10_000,
        query_timeout: PING_MS,
      })
    } catch (error) {
      throw storeFailure(error)
    }
  }

  async #connect(): Promise<void> {
    const client = this.#newClient()
    client.on('error', () => this.#lose(client))
    client.on('end', () => this.#lose(client))
    client.on('notification', ({ payload }) => this.#receive(payload))
    try {
      await client.connect()
      await client.query(`LISTEN ${this.#channel}`)
    } catch {
      void client.end().catch(() => {})
      this.#tryLater()
      return
    }
    if (this.#isStopped) return void client.end().catch(() => {})
    this.#client = client
    this.#failures = 0
    // If the connection breaks without an error, a statement gets no answer and reveals that.
    clearInterval(this.#ping)
    this.#ping = setInterval(() => {
      if (!this.#isSending) void this.#flush(true)
    }, PING_MS).unref()
    // Notices that other nodes sent while this connection did not exist are lost.
    this.#listener?.gap()
    if (!this.#isSending) void this.#flush()
  }

  #lose(client: pg.Client): void {
    if (this.#client !== client || this.#isStopped) return
    this.#client = undefined
    clearInterval(this.#ping)
    void client.end().catch(() => {})
    this.#tryLater()
  }

  #tryLater(): void {
    if (this.#isStopped) return
    const ms = Math.min(50 * 2 ** Math.min(this.#failures++, 6), 1000) * (0.5 + Math.random() / 2)
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => void this.#connect(), ms)
  }

  /** Sends what is waiting, with one statement at a time. A ping is sent even if nothing is waiting. */
  async #flush(isPing = false): Promise<void> {
    this.#isSending = true
    let isFirst = isPing
    for (;;) {
      const client = this.#client
      if (!client || !(isFirst || this.#waiting.size > 0 || this.#hasDropped)) break
      isFirst = false
      const [payloads, sent] = this.#payloads()
      const hadDropped = this.#hasDropped
      this.#hasDropped = false
      try {
        await client.query(
          `SELECT pg_notify('${this.#channel}', payload) FROM unnest($1::text[]) payload`,
          [payloads],
        )
      } catch {
        // The connection is lost or too slow; the waiting notices are sent over the next connection.
        this.#hasDropped ||= hadDropped
        this.#lose(client)
        continue
      }
      for (const [key, text] of sent) if (this.#waiting.get(key) === text) this.#waiting.delete(key)
    }
    this.#isSending = false
  }

  /** Returns all waiting notices in as few payloads as the server's size limit allows. */
  #payloads(): [payloads: string[], sent: (readonly [string, string])[]] {
    const batch = [...this.#waiting]
    const start = `{"node":"${this.#node}","gap":${this.#hasDropped},"notices":[`
    const payloads: string[] = []
    let body = ''
    for (const [, text] of batch) {
      if (body !== '' && Buffer.byteLength(start + body + text) > MOST_BYTES) {
        payloads.push(`${start}${body}]}`)
        body = ''
      }
      body += body === '' ? text : `,${text}`
    }
    if (body !== '' || this.#hasDropped) payloads.push(`${start}${body}]}`)
    return [payloads, batch]
  }

  #receive(payload: string | undefined): void {
    const listener = this.#listener
    if (!listener || payload === undefined || this.#isStopped) return
    let message: unknown
    try {
      message = JSON.parse(payload)
    } catch {
      return // not from a node of ours
    }
    if (!isMessage(message) || message.node === this.#node) return
    if (message.gap) listener.gap()
    for (const notice of message.notices) if (isNotice(notice)) listener.notice(notice)
  }
}

/** Encodes a notice. If it replaces an earlier notice about its thread, it is due if either of them is. */
function encoded(notice: NodeNotice, before: string | undefined): string {
  if (notice.type !== 'committed' || before === undefined) return JSON.stringify(notice)
  const earlier = JSON.parse(before) as { readonly isDue: boolean }
  return JSON.stringify({ ...earlier, ...notice, isDue: notice.isDue || earlier.isDue })
}

interface Message {
  readonly node: string
  readonly gap: boolean
  readonly notices: readonly unknown[]
}

function isMessage(value: unknown): value is Message {
  return (
    typeof value === 'object' &&
    value !== null &&
    'node' in value &&
    'gap' in value &&
    'notices' in value &&
    Array.isArray(value.notices)
  )
}

/** Whether a value is a notice of a type that this version knows; a newer node may send other types. */
function isNotice(value: unknown): value is NodeNotice {
  if (typeof value !== 'object' || value === null) return false
  if (!('type' in value) || !('threadId' in value) || typeof value.threadId !== 'string')
    return false
  switch (value.type) {
    case 'committed':
      return 'seq' in value && typeof value.seq === 'number' && 'isDue' in value
    case 'interrupt':
    case 'removed':
      return true
    default:
      return false
  }
}
