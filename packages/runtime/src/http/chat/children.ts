import { type UIMessageChunk, UIStreamEncoder } from '@skein/threads/ai-sdk'
import { SkeinError } from '@skein/base'
import type { NumberedEvent, Runtime, WaitingItem } from '../../runtime-api.ts'
import { Channel } from '../stream/channel.ts'
import { agentNames, type ChatView, isUserMessage, ShownEvents } from './shown-events.ts'
import type { ThreadHead } from '../../store/store.ts'

/** Chunks that wait to be sent; each thread may have one more in hand. */
const CAPACITY = 64

/** Follows the children of a thread, and theirs, and tells what they say as `data-child-chunk`. */
export class ChildChunks {
  readonly #runtime: Runtime
  readonly #hold: boolean
  readonly #abort = new AbortController()
  readonly #channel: Channel<UIMessageChunk> = new Channel(CAPACITY)
  readonly #pumps = new Set<Promise<void>>()

  constructor(runtime: Runtime, { hold }: { readonly hold: boolean }) {
    this.#runtime = runtime
    this.#hold = hold
  }

  /** Takes up the child that an event tells of. */
  follow(event: NumberedEvent['event'], path: readonly string[] = []): void {
    if (event.type !== 'subagent_created') return
    const place = [...path, event.name]
    const pump = this.#pump(event.reference, place).catch((error: unknown) => {
      // A child that is gone has nothing more to say.
      if (!SkeinError.is(error) || error.code !== 'THREAD_NOT_FOUND') throw error
    })
    this.#pumps.add(pump)
    void pump.finally(() => this.#pumps.delete(pump)).catch(() => this.#channel.close())
  }

  /** Merges the chunks of an answer with those of the children; ends with the answer. */
  async *merge(chunks: AsyncGenerator<UIMessageChunk, void>): AsyncGenerator<UIMessageChunk, void> {
    const own = (async () => {
      for await (const chunk of chunks) if (!(await this.#channel.put(chunk))) return
    })().finally(() => this.#channel.close())
    try {
      for await (const chunk of this.#channel.read()) yield chunk
      await own
    } finally {
      this.#abort.abort()
      this.#channel.close()
    }
  }

  async #pump(reference: string, path: readonly string[]): Promise<void> {
    const { registry } = this.#runtime
    const shown = new ShownEvents(registry, { hold: this.#hold })
    const encoder = new UIStreamEncoder({ agentNames: agentNames(registry) })
    const { signal } = this.#abort
    for await (const { event } of this.#runtime.subscribe(reference, { signal })) {
      this.follow(event, path)
      if (isUserMessage(event)) continue
      for (const chunk of shown.push(event).flatMap((one) => encoder.push(one))) {
        const data = { reference, path, chunk }
        const told: UIMessageChunk = { type: 'data-child-chunk', data, transient: true }
        if (!(await this.#channel.put(told))) return
      }
    }
  }
}

/**
 * Approvals that children wait for, each shown on the call that made the child: that is the one the
 * page has. One call can ask one question at a time; the next comes when it is answered.
 */
export async function approvalsBelow(
  runtime: Runtime,
  thread: ThreadHead,
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
      reason: `${item.path.join(' › ')}: ${item.toolName}(${JSON.stringify(item.arguments)})`,
    })
  }
  return [...chunks.values()]
}

/** The child of a thread on the way down to a descendant. */
async function childOn(
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
