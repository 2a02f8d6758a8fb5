/**
 * The storage of a log: a sequence of bytes that only grows at its end. Methods may be synchronous. A log
 * never calls a method before the previous call has finished.
 */
export interface LogStorage {
  /** Returns all stored bytes. */
  read(): Uint8Array | Promise<Uint8Array>
  /**
   * Adds bytes at the end, all or nothing, but only if exactly `size` bytes are stored. With any other
   * number, another writer was faster: then `append` writes nothing and returns false.
   */
  append(bytes: Uint8Array, size: number): boolean | Promise<boolean>
  /**
   * Cuts the storage to `size` bytes. Called only when a log is opened, to remove an incomplete or damaged
   * end. `read` is the number of bytes that were read: if the storage has another number, or if another process
   * is writing, the end may be a line that is being written; then nothing is cut off and `truncate` returns false.
   */
  truncate(size: number, read: number): void | boolean | Promise<void | boolean>
  /** Writes appended bytes to disk, so that they survive a power cut. */
  sync(): void | Promise<void>
  close(): void | Promise<void>
}

/** Stores a log in memory, for tests and browsers. */
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
    const newSize = size + bytes.length
    if (newSize > this.#bytes.length) {
      const grown = new Uint8Array(Math.max(newSize, this.#bytes.length * 2))
      grown.set(this.#bytes.subarray(0, size))
      this.#bytes = grown
    }
    this.#bytes.set(bytes, size)
    this.#size = newSize
    return true
  }

  truncate(size: number): void {
    this.#size = Math.min(size, this.#size)
  }

  sync(): void {}

  close(): void {}
}
