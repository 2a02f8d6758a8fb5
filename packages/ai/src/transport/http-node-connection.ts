import { type MaybePromise } from '@skein/base'
import type { Socket } from 'node:net'
import { ResponseParser } from './http-node-parser.ts'
import type { ByteSource, ResponseHeaders, TransportResponse } from './transport.ts'

/** The pool that owns connections: notified when a connection becomes free or is closed. */
export interface ConnectionOwner {
  /**
   * Called when an exchange is complete. `idleMs` is how long the server keeps an idle connection, if
   * stated.
   */
  onFree(connection: Connection, idleMs: number | undefined): void
  onClosed(connection: Connection): void
}

/** A body that is ready to be sent: text, bytes, or a list of both. */
export type SentBody = string | Uint8Array | readonly (string | Uint8Array)[]

/** A socket that carries one exchange (request and response) after the other. */
export class Connection {
  readonly #socket: Socket
  readonly #owner: ConnectionOwner
  #isReady: boolean
  #exchange: Exchange | undefined
  /** True if the connection has carried a request before; the server may have closed it in the meantime. */
  isReused: boolean = false
  /** The time on the `performance.now()` clock after which the connection is not reused. */
  expiresAt: number = Infinity
  /** The time on the `performance.now()` clock since which the connection is idle. */
  #idleSince = Infinity

  /** With TLS, nothing is written before the handshake has verified the server. */
  constructor(socket: Socket, owner: ConnectionOwner, { isSecure }: { isSecure: boolean }) {
    this.#socket = socket
    this.#owner = owner
    this.#isReady = !isSecure
    if (isSecure) socket.once('secureConnect', () => (this.#isReady = true))
    socket.on('data', (chunk: Buffer) => {
      if (this.#exchange) this.#exchange.onData(chunk)
      else socket.destroy() // bytes without a request: the connection cannot be trusted
    })
    socket.on('end', () => this.#onEnd(undefined))
    socket.on('error', (error: Error) => this.#onEnd(error))
    socket.on('close', () => {
      this.#onEnd(undefined)
      owner.onClosed(this)
    })
  }

  /** Sends the request; resolves once the head of the response has arrived. */
  send(head: string, body: SentBody | undefined, signal: AbortSignal): Promise<TransportResponse> {
    this.#socket.ref()
    const exchange = new Exchange(this, signal)
    this.#exchange = exchange
    const write = (): void => {
      // The connection may have ended while the request waited.
      if (this.#exchange === exchange) this.#write(head, body)
    }
    if (!this.#isReady) this.#socket.once('secureConnect', write)
    // The server may have closed a connection that was idle for a while, and Node may not have noticed yet. After one
    // turn of the event loop Node has noticed, so the request is not written to a closed connection.
    else if (performance.now() - this.#idleSince > SETTLED_IDLE_MS) setImmediate(write)
    else write()
    return exchange.response
  }

  #write(head: string, body: SentBody | undefined): void {
    this.#exchange!.isWritten = true
    // Head and body are written together where possible, to fit in one packet. The head is Latin-1, a
    // text body UTF-8; only for an ASCII head are both encodings the same.
    // oxlint-disable-next-line no-control-regex
    if (typeof body === 'string' && /^[\x00-\x7f]*$/.test(head)) {
      this.#socket.write(head + body)
      return
    }
    const pieces = typeof body === 'string' || body instanceof Uint8Array ? [body] : (body ?? [])
    this.#socket.cork()
    this.#socket.write(head, 'latin1')
    for (const piece of pieces) this.#socket.write(piece)
    this.#socket.uncork()
  }

  /** Called when a response was read completely: keeps the connection for reuse or closes it. */
  release(canReuse: boolean, idleMs: number | undefined): void {
    this.#exchange = undefined
    // If the response arrived before the whole request was sent, unsent bytes remain in the socket.
    const isClean = !this.#socket.destroyed && this.#socket.writableLength === 0
    if (!canReuse || !isClean) return this.destroy()
    this.isReused = true
    this.#idleSince = performance.now()
    this.#socket.resume()
    this.#socket.unref()
    this.#owner.onFree(this, idleMs)
  }

  destroy(): void {
    this.#exchange = undefined
    this.#socket.destroy()
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  #onEnd(error: Error | undefined): void {
    const exchange = this.#exchange
    this.#exchange = undefined
    exchange?.onEnd(error)
    this.#socket.destroy()
  }
}

/** Above this many buffered bytes the socket is paused until they are read. */
const HIGH_WATER_BYTES = 1024 * 1024

/** A connection that was idle for less than this is used immediately: a server rarely closes one so soon. */
const SETTLED_IDLE_MS = 100

/** Thrown when the server had closed a reused connection and sent no byte of a response. */
export class StaleConnectionError extends Error {
  /** Whether the request was written; if so, the server may have read it and acted on it. */
  readonly isWritten: boolean
  readonly #reason: Error | undefined

  constructor(isWritten: boolean, reason: Error | undefined) {
    super()
    this.isWritten = isWritten
    this.#reason = reason
  }

  /** Returns the error for a request that is not sent again. */
  toReset(): Error {
    return this.#reason ?? connectionReset()
  }
}

function connectionReset(): Error {
  return Object.assign(new Error('The connection closed before the end of the response'), {
    code: 'ECONNRESET',
  })
}

/** One request and its response. `read` returns everything that has arrived as one chunk. */
class Exchange implements ByteSource {
  readonly response: Promise<TransportResponse>
  readonly #connection: Connection
  readonly #signal: AbortSignal
  readonly #parser = new ResponseParser()
  readonly #isReused: boolean
  isWritten = false
  #resolve!: (response: TransportResponse) => void
  #reject!: (error: unknown) => void
  #chunks: Buffer[] = []
  #bytes = 0
  #isOver = false
  #sawBytes = false
  #failure: { readonly error: unknown } | undefined
  #wake: (() => void) | undefined

  constructor(connection: Connection, signal: AbortSignal) {
    this.#connection = connection
    this.#isReused = connection.isReused
    this.#signal = signal
    this.response = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  read(): MaybePromise<Uint8Array | undefined> {
    if (this.#bytes > 0 || this.#isOver) return this.#arrived()
    // The bytes are taken when the reader continues. Taken where they arrive, they and the events made of them outlive
    // two collections of young memory, and long streams cost a fifth more.
    return new Promise<void>((resolve) => {
      this.#wake = resolve
    }).then(() => this.#arrived())
  }

  /** Returns what has arrived; undefined at the end. */
  #arrived(): Uint8Array | undefined {
    if (this.#bytes > 0) return this.#take()
    if (this.#failure) throw this.#failure.error
    return undefined
  }

  cancel(): void {
    this.#drop()
    if (this.#isOver) return
    this.#settle(undefined)
    this.#connection.destroy()
  }

  onData(chunk: Buffer): void {
    this.#sawBytes = true
    const hadHead = this.#parser.hasHead
    let body: Buffer
    try {
      body = this.#parser.push(chunk)
    } catch (error) {
      return this.#fail(error)
    }
    if (body.length > 0) {
      this.#chunks.push(body)
      this.#bytes += body.length
      if (this.#bytes > HIGH_WATER_BYTES) this.#connection.pause()
    }
    if (!hadHead && this.#parser.hasHead) this.#resolve(this.#describe())
    if (this.#parser.isDone) this.#complete()
    else if (body.length > 0) this.#wakeReader()
  }

  /** Called when the connection ended, with or without an error. */
  onEnd(error: Error | undefined): void {
    if (!error && this.#parser.end()) return this.#complete()
    const isStale = this.#isReused && !this.#sawBytes
    if (isStale) this.#fail(new StaleConnectionError(this.isWritten, error))
    else this.#fail(error ?? connectionReset())
  }

  #describe(): TransportResponse {
    const { status, headers } = this.#parser
    return { status, headers: new HeaderMap(headers), body: this }
  }

  #take(): Uint8Array {
    const chunks = this.#chunks
    const bytes = chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks, this.#bytes)
    if (this.#bytes > HIGH_WATER_BYTES && !this.#isOver) this.#connection.resume()
    this.#drop()
    return bytes
  }

  #drop(): void {
    this.#chunks = []
    this.#bytes = 0
  }

  #complete(): void {
    this.#settle(undefined)
    this.#connection.release(this.#parser.canReuse, this.#parser.idleMs)
  }

  #fail(error: unknown): void {
    this.#settle({ error })
    this.#connection.destroy()
  }

  readonly #onAbort = (): void => {
    this.#drop()
    this.#fail(this.#signal.reason)
  }

  /** Marks the exchange as ended. Only the first call has an effect. */
  #settle(failure: { readonly error: unknown } | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#failure = failure
    this.#signal.removeEventListener('abort', this.#onAbort)
    // `#reject` has no effect if the head of the response has already arrived.
    if (failure) this.#reject(failure.error)
    this.#wakeReader()
  }

  #wakeReader(): void {
    const wake = this.#wake
    this.#wake = undefined
    wake?.()
  }
}

class HeaderMap implements ResponseHeaders {
  readonly #headers: ReadonlyMap<string, string>

  constructor(headers: ReadonlyMap<string, string>) {
    this.#headers = headers
  }

  get(name: string): string | null {
    return this.#headers.get(name.toLowerCase()) ?? null
  }

  forEach(visit: (value: string, name: string) => void): void {
    this.#headers.forEach(visit)
  }
}
