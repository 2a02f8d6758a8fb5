import { HttpError } from '../operations/http-error.ts'
import type { HttpLimits } from '../http/services.ts'

/** An open stream that the server can end. */
interface OpenStream {
  /** Sends a last comment and ends the stream; a client that needs more reconnects. */
  end(): void
}

/** All streams that are open, counted per client. */
export class OpenStreams {
  readonly #limits: Pick<HttpLimits, 'maxStreams' | 'maxStreamsPerClient'>
  readonly #open = new Set<OpenStream>()
  readonly #perClient = new Map<string, number>()

  constructor(limits: Pick<HttpLimits, 'maxStreams' | 'maxStreamsPerClient'>) {
    this.#limits = limits
  }

  get size(): number {
    return this.#open.size
  }

  /** Throws when the server or this client already has the maximum number of open streams. */
  checkRoom(client: string): void {
    const { maxStreams, maxStreamsPerClient } = this.#limits
    if (this.#open.size < maxStreams && this.#countOf(client) < maxStreamsPerClient) return
    throw new HttpError('Too many streams are open.', {
      code: 'STREAM_LIMIT',
      hint: 'Close one first, or use a tree stream for several threads.',
      headers: { 'retry-after': '5' },
    })
  }

  /** Adds a stream; the returned function removes it. */
  add(stream: OpenStream, client: string): () => void {
    this.#open.add(stream)
    this.#perClient.set(client, this.#countOf(client) + 1)
    return () => {
      if (!this.#open.delete(stream)) return
      const rest = this.#countOf(client) - 1
      if (rest > 0) this.#perClient.set(client, rest)
      else this.#perClient.delete(client)
    }
  }

  endAll(): void {
    for (const stream of this.#open) stream.end()
  }

  #countOf(client: string): number {
    return this.#perClient.get(client) ?? 0
  }
}
