import type { Socket } from 'node:net'
import { ResponseParser } from './http-node-parser.ts'
import type { ByteSource, ResponseHeaders, TransportResponse } from './transport.ts'

/** Where connections go when their exchange is over. */
export interface ConnectionOwner {
  /** `idleMs`: how long the server keeps it, if it said so. */
  onFree(connection: Connection, idleMs: number | undefined): void
  onClosed(connection: Connection): void
}

/** A socket that carries one exchange after the other. */
export class Connection {
  readonly #socket: Socket
  readonly #owner: ConnectionOwner
  #isReady: boolean
  #exchange: Exchange | undefined
  /** It carried a request before: the server may have closed it meanwhile. */
  isReused: boolean = false
  /** When it becomes too old to be used again, by `performance.now()`. */
  expiresAt: number = Infinity

  /** With TLS, nothing is written before the other side has shown who it is. */
  constructor(socket: Socket, owner: ConnectionOwner, { isSecure }: { isSecure: boolean }) {
    this.#socket = socket
    this.#owner = owner
    this.#isReady = !isSecure
    if (isSecure) socket.once('secureConnect', () => (this.#isReady = true))
    socket.on('data', (chunk: Buffer) => {
      if (this.#exchange) this.#exchange.onData(chunk)
      else socket.destroy() // nobody asked
    })
    socket.on('end', () => this.#onEnd(undefined))
    socket.on('error', (error: Error) => this.#onEnd(error))
    socket.on('close', () => {
      this.#onEnd(undefined)
      owner.onClosed(this)
    })
  }

  /** Sends the request; settles with the head of the response. */
  send(
    head: string,
    body: string | Uint8Array | undefined,
    signal: AbortSignal,
  ): Promise<TransportResponse> {
    this.#socket.ref()
    const exchange = new Exchange(this, signal)
    this.#exchange = exchange
    if (this.#isReady) this.#write(head, body)
    else this.#socket.once('secureConnect', () => this.#write(head, body))
    return exchange.response
  }

  #write(head: string, body: string | Uint8Array | undefined): void {
    // One packet where possible. The head is Latin-1; a text body is UTF-8.
    // oxlint-disable-next-line no-control-regex
    if (typeof body === 'string' && /^[\x00-\x7f]*$/.test(head)) this.#socket.write(head + body)
    else {
      this.#socket.write(head, 'latin1')
      if (body !== undefined) this.#socket.write(body)
    }
  }

  /** The exchange is over and all of it was read. */
  release(canReuse: boolean, idleMs: number | undefined): void {
    this.#exchange = undefined
    // An answer that came before the request was out leaves the rest of it in the way.
    const isClean = !this.#socket.destroyed && this.#socket.writableLength === 0
    if (!canReuse || !isClean) return this.destroy()
    this.isReused = true
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

/** Buffered bytes above which the socket is paused until the reader comes back. */
const HIGH_WATER_BYTES = 1024 * 1024

/** The server closed a connection that had been idle, as we used it: nothing was answered. */
export class StaleConnectionError extends Error {}

/** One request and its response. Gives its reader all bytes of a network read as one. */
class Exchange implements ByteSource {
  readonly response: Promise<TransportResponse>
  readonly #connection: Connection
  readonly #signal: AbortSignal
  readonly #parser = new ResponseParser()
  readonly #isReused: boolean
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

  async read(): Promise<Uint8Array | undefined> {
    if (this.#bytes === 0 && !this.#isOver) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
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

  /** The connection ended, with or without an error. */
  onEnd(error: Error | undefined): void {
    if (!error && this.#parser.end()) return this.#complete()
    const isStale = this.#isReused && !this.#sawBytes
    this.#fail(
      isStale
        ? new StaleConnectionError()
        : (error ??
            Object.assign(new Error('The connection closed before the end of the response'), {
              code: 'ECONNRESET',
            })),
    )
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

  /** The first end counts. */
  #settle(failure: { readonly error: unknown } | undefined): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#failure = failure
    this.#signal.removeEventListener('abort', this.#onAbort)
    // Does nothing once the head was handed out.
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
