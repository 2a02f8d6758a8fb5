import { type UIMessageChunk, UIStreamEncoder } from '@skein/threads/ai-sdk'
import { SkeinError } from '@skein/base'
import type { NumberedEvent, Runtime, WaitingItem, ThreadInfo } from '@skein/runtime'
import { MergeQueue } from '../../streams/tree-queue.ts'
import { agentNames, type ChatView, reasonOf } from './chat-view.ts'
import { isShownUserMessage } from './visible-events.ts'
import { ShownEvents } from './shown-events.ts'

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
    const shown = new ShownEvents(registry, { hold: this.#hold })
    const encoder = new UIStreamEncoder({ agentNames: agentNames(registry) })
    const { signal } = this.#abort
    for await (const { event } of this.#runtime.subscribe(reference, { signal })) {
      this.follow(event, path)
      if (isShownUserMessage(event)) continue
      for (const chunk of shown.push(event).flatMap((one) => encoder.push(one))) {
        const data = { reference, path, chunk }
        const wrapped: UIMessageChunk = { type: 'data-child-chunk', data, transient: true }
        if (!(await this.#queue.put(wrapped))) return
      }
    }
  }
}

/**
 * Returns the approvals that descendants wait for, each shown on the call that created the child, because the
 * page has that call. A call can show one approval at a time; the next one follows when it is answered.
 */
export async function approvalsBelow(
  runtime: Runtime,
  thread: ThreadInfo,
  waiting: readonly WaitingItem[],
  view: ChatView,
): Promise<readonly UIMessageChunk[]> {
  const chunks = new Map<string, UIMessageChunk>()
  for (const item of waiting) {
    if (item.kind !== 'approval' || item.threadId === thread.id) continue
    const child = await childOn(runtime, thread.id, item.threadId)
    const toolCallId = child === undefined ? undefined : view.callOfChild.get(child)
    if (toolCallId === undefined || chunks.has(toolCallId)) continue
    chunks.set(toolCallId, {
      type: 'tool-approval-request',
      approvalId: item.interruptId,
      toolCallId,
      reason: reasonOf(
        `${item.path.join(' › ')}: ${item.toolName}(${JSON.stringify(item.arguments)})`,
        item.isIrreversible,
      ),
    })
  }
  return [...chunks.values()]
}

/** Returns the direct child of an ancestor that is the given descendant or leads down to it. */
export async function childOn(
  runtime: Runtime,
  ancestorId: string,
  threadId: string,
): Promise<string | undefined> {
  for (let id = threadId; ;) {
    const { parentId } = await runtime.threads.get(id)
    if (parentId === ancestorId) return id
    if (parentId === null) return undefined
    id = parentId
  }
}
