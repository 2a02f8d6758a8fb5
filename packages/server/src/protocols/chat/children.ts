import { SkeinError } from '@skein/base'
import type { NumberedEvent, Runtime } from '@skein/runtime'
import { UIStreamEncoder, type UIMessageChunk } from '@skein/threads/ai-sdk'
import { agentNames } from './chat-view.ts'
import { ShownEvents } from './shown-events.ts'
import { isShownUserMessage } from './visible-events.ts'
import { MergeQueue } from '../../streams/merge-queue.ts'

/** How many chunks may wait to be sent; each child whose events are read may hold one more chunk. */
const CAPACITY = 64

/** Reads the events of all descendants of a thread, and sends their output as `data-child-chunk`. */
export class ChildChunks {
  readonly #runtime: Runtime
  readonly #hold: boolean
  readonly #abort = new AbortController()
  readonly #queue: MergeQueue<UIMessageChunk> = new MergeQueue(CAPACITY)
  readonly #pumps = new Set<Promise<void>>()

  constructor(runtime: Runtime, { hold }: { readonly hold: boolean }) {
    this.#runtime = runtime
    this.#hold = hold
  }

  /** Begins to read the events of the child that a `subagent_created` event names. */
  follow(event: NumberedEvent['event'], path: readonly string[] = []): void {
    if (event.type !== 'subagent_created') return
    const place = [...path, event.name]
    const pump = this.#pump(event.reference, place).catch((error: unknown) => {
      // A child that was removed has no more events.
      if (!SkeinError.is(error) || error.code !== 'THREAD_NOT_FOUND') throw error
    })
    this.#pumps.add(pump)
    void pump.finally(() => this.#pumps.delete(pump)).catch(() => this.#queue.close())
  }

  /** Merges the chunks of an answer with those of the children; ends when the answer ends. */
  async *merge(chunks: AsyncGenerator<UIMessageChunk, void>): AsyncGenerator<UIMessageChunk, void> {
    const own = (async () => {
      for await (const chunk of chunks) if (!(await this.#queue.put(chunk))) return
    })().finally(() => this.#queue.close())
    own.catch(() => undefined) // reported below, unless the reader has left
    try {
      for await (const chunk of this.#queue.read()) yield chunk
      await own
    } finally {
      this.#abort.abort()
      this.#queue.close()
    }
  }

  async #pump(reference: string, path: readonly string[]): Promise<void> {
    const { registry } = this.#runtime
    const view = new ShownEvents(registry, { hold: this.#hold })
    const encoder = new UIStreamEncoder({ agentNames: agentNames(registry) })
    const { signal } = this.#abort
    for await (const { event } of this.#runtime.subscribe(reference, { signal })) {
      this.follow(event, path)
      if (isShownUserMessage(event)) continue
      for (const chunk of view.push(event).flatMap((one) => encoder.push(one))) {
        const data = { reference, path, chunk }
        const dataChunk: UIMessageChunk = { type: 'data-child-chunk', data, transient: true }
        if (!(await this.#queue.put(dataChunk))) return
      }
    }
  }
}
