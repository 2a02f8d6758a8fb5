import type * as Zlib from 'node:zlib'
import type { ByteSource, TransportResponse } from './transport.ts'

/** Unpacks the body of a server that compressed it unasked. */
export function unpack(response: TransportResponse, zlib: () => typeof Zlib): TransportResponse {
  const encoding = response.headers.get('content-encoding')?.trim().toLowerCase() ?? ''
  const create = unpackers.get(encoding)
  return create
    ? { ...response, body: new UnpackedSource(response.body, create(zlib())) }
    : response
}

type Unpacker = Zlib.Gunzip | Zlib.Inflate | Zlib.BrotliDecompress

const unpackers = new Map<string, (zlib: typeof Zlib) => Unpacker>([
  ['gzip', (zlib) => zlib.createGunzip()],
  ['x-gzip', (zlib) => zlib.createGunzip()],
  ['deflate', (zlib) => zlib.createInflate()],
  ['br', (zlib) => zlib.createBrotliDecompress()],
])

/** Pulls from the packed body only as fast as the reader asks. */
class UnpackedSource implements ByteSource {
  readonly #packed: ByteSource
  readonly #unpacker: Unpacker
  #chunks: AsyncIterator<Uint8Array> | undefined

  constructor(packed: ByteSource, unpacker: Unpacker) {
    this.#packed = packed
    this.#unpacker = unpacker
    unpacker.on('error', () => {}) // the reader gets it from the iterator
  }

  async read(): Promise<Uint8Array | undefined> {
    if (!this.#chunks) {
      this.#chunks = this.#unpacker[Symbol.asyncIterator]()
      void this.#feed()
    }
    const { done, value } = await this.#chunks.next()
    return done ? undefined : value
  }

  cancel(): void {
    this.#packed.cancel()
    this.#unpacker.destroy()
  }

  /** Never rejects: an error of the packed body ends the unpacker, which tells the reader. */
  async #feed(): Promise<void> {
    try {
      for (;;) {
        const chunk = await this.#packed.read()
        if (!chunk) break
        if (!this.#unpacker.write(chunk)) await this.#drained()
      }
      this.#unpacker.end()
    } catch (error) {
      this.#unpacker.destroy(error as Error) // what a body rejects with is always an Error
    }
  }

  #drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#unpacker.once('drain', resolve).once('close', resolve)
    })
  }
}
