import { HttpError } from '../http-error.ts'
import type { HttpLimits } from '../limits.ts'

/** A stream that can be ended from outside. */
export interface OpenStream {
  /** Says good-bye and ends; a client that wants more comes back. */
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

  /** Throws before there are too many. */
  checkRoom(client: string): void {
    const { maxStreams, maxStreamsPerClient } = this.#limits
    if (this.#open.size < maxStreams && this.#countOf(client) < maxStreamsPerClient) return
    throw new HttpError('Too many streams are open.', {
      code: 'STREAM_LIMIT',
      hint: 'Close one first, or use a tree stream for several threads.',
      headers: { 'retry-after': '5' },
    })
  }

  /** The returned function takes it off again. */
  add(stream: OpenStream, client: string): () => void {
    this.#open.add(stream)
    this.#perClient.set(client, this.#countOf(client) + 1)
    return () => {
      if (!this.#open.delete(stream)) return
      const left = this.#countOf(client) - 1
      if (left > 0) this.#perClient.set(client, left)
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
