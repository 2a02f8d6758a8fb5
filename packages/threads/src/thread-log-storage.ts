/**
 * Where a log lives: a row of bytes that only grows at its end. Methods may be synchronous; a log calls one at a time.
 */
export interface LogStorage {
  /** Everything that is stored. */
  read(): Uint8Array | Promise<Uint8Array>
  /**
   * Adds bytes at the end, all or nothing, and only if `size` bytes are stored. Returns false, having written nothing,
   * when they are not: someone else wrote.
   */
  append(bytes: Uint8Array, size: number): boolean | Promise<boolean>
  /** Cuts to `size` bytes; only used to drop a torn tail. */
  truncate(size: number): void | Promise<void>
  /** Makes what was appended survive a power cut. */
  sync(): void | Promise<void>
  close(): void | Promise<void>
}

/** A log in memory: for tests, browsers, and as the portable twin of a file. */
export class MemoryLogStorage implements LogStorage {
  #bytes: Uint8Array
  #size: number

  constructor(initial: Uint8Array = new Uint8Array()) {
    this.#bytes = initial.slice()
    this.#size = initial.length
  }

  read(): Uint8Array {
    return this.#bytes.slice(0, this.#size)
  }

  append(bytes: Uint8Array, size: number): boolean {
    if (size !== this.#size) return false
    const needed = size + bytes.length
    if (needed > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(needed, this.#bytes.length * 2))
      grown.set(this.#bytes.subarray(0, size))
      this.#bytes = grown
    }
    this.#bytes.set(bytes, size)
    this.#size = needed
    return true
  }

  truncate(size: number): void {
    this.#size = Math.min(size, this.#size)
  }

  sync(): void {}

  close(): void {}
}
