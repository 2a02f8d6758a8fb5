import { BatchReader, type BatchSource } from './batch-reader.ts'
import type { StreamEvent } from './event.ts'
import type { Turn } from './turn.ts'

/**
 * A running answer (UPP §9.1). It starts with the first read of events or of `turn`.
 *
 * - Iterate it once; leaving the loop early aborts the call.
 * - `turn` runs it to its end even if nobody reads the events; those wait for their reader.
 * - A failure reaches whoever reads. A `turn` nobody looks at never becomes an unhandled rejection.
 */
export class StreamResult<Data = unknown> implements AsyncIterable<StreamEvent> {
  readonly #reader: BatchReader<StreamEvent, Turn<Data>>

  constructor(source: BatchSource<StreamEvent, Turn<Data>>) {
    this.#reader = new BatchReader(source)
  }

  /** The complete turn. Rejects with the failure of the call, `CANCELLED` after an abort. */
  get turn(): Promise<Turn<Data>> {
    return this.#reader.result
  }

  /** Stops the model and all tools. Settles at once, also when a tool does not listen. */
  abort(reason?: unknown): void {
    this.#reader.abort(reason)
  }

  [Symbol.asyncIterator](): AsyncIterator<StreamEvent, undefined> {
    return this.#reader[Symbol.asyncIterator]()
  }
}
