import type { ThreadEvent } from '@skein/threads'
import { type UIMessageChunk, UIStreamEncoder } from '@skein/threads/ai-sdk'
import type {
  NumberedEvent,
  Runtime,
  SessionResult,
  WaitingItem,
} from '../../contract/runtime-api.ts'
import type { ThreadHead } from '../../store/store.ts'
import { agentNames, isShownUserMessage, ShownEvents } from './shown-events.ts'
import { isDelivered } from './hold-back.ts'
import { approvalsBelow, ChildChunks } from './children.ts'
import { untilSettled } from './find-answer.ts'

/** Which answer of a thread is streamed, and what of it the client has already. */
export interface AnswerStreamOptions {
  /** Number of the event before the answer, or before what leads to it. */
  readonly after: number
  /** The message that is answered; it may still wait in the queue. */
  readonly queueId?: string
  /** The client has the answer up to this event, and continues this message. */
  readonly continues?: { readonly messageId: string; readonly seq: number }
  /** Holds words of governed agents back until they are delivered. */
  readonly hold: boolean
  /** Shows what children say, as data of its own. */
  readonly children?: boolean
  readonly signal: AbortSignal
}

/**
 * One answer as chunks of the UI message stream, from `start` to `finish`, as it is given. It ends when
 * the thread is at rest, when somebody has to answer, or when the next answer begins.
 */
export function answerStream(
  runtime: Runtime,
  thread: ThreadHead,
  options: AnswerStreamOptions,
): AsyncGenerator<UIMessageChunk, void> {
  if (!options.children) return ownStream(runtime, thread, options)
  const children = new ChildChunks(runtime, options)
  return children.merge(
    ownStream(runtime, thread, options, (event) => children.follow(event, [thread.agent])),
  )
}

async function* ownStream(
  runtime: Runtime,
  thread: ThreadHead,
  options: AnswerStreamOptions,
  watch: (event: NumberedEvent['event']) => void = () => undefined,
): AsyncGenerator<UIMessageChunk, void> {
  const answer = new Answer(runtime, thread, options)
  const events = untilSettled(runtime, thread.id, {
    after: String(options.after),
    signal: options.signal,
  })
  try {
    for (;;) {
      const step = await events.next()
      if (step.done) {
        if (!options.signal.aborted) yield* await answer.settle(step.value)
        return
      }
      const { event } = step.value
      if (answer.isNext(event)) return yield* answer.end()
      const chunks = answer.push(step.value)
      watch(event)
      yield* chunks
    }
  } finally {
    await events.return(undefined)
  }
}

class Answer {
  readonly #runtime: Runtime
  readonly #thread: ThreadHead
  readonly #options: AnswerStreamOptions
  #encoder: UIStreamEncoder
  #shown: ShownEvents
  /** Chunks that are kept until it is known that they belong to the answer. */
  #kept: UIMessageChunk[] | undefined
  #hasStarted = false
  #hasTurn = false
  #isTurnOpen = false
  #wasSpokenTo = false
  #hasFailed = false
  /** Approvals that this response asks for. */
  readonly #asked = new Set<string>()

  constructor(runtime: Runtime, thread: ThreadHead, options: AnswerStreamOptions) {
    this.#runtime = runtime
    this.#thread = thread
    this.#options = options
    this.#shown = new ShownEvents(runtime.registry, options)
    this.#encoder = newEncoder(runtime)
    if (options.queueId !== undefined) this.#kept = []
  }

  /** Whether another answer begins here. While the message still waits, that may be the one. */
  isNext(event: NumberedEvent['event']): boolean {
    if (event.type !== 'turn_start' || !this.#hasTurn || !this.#wasSpokenTo) return false
    if (this.#kept === undefined) return true
    this.#restart()
    return false
  }

  push({ id, event }: NumberedEvent): readonly UIMessageChunk[] {
    const taken = this.#take(event)
    if (event.type === 'turn_start') this.#hasTurn = this.#isTurnOpen = true
    if (event.type === 'turn_end') this.#isTurnOpen = false
    if (isShownUserMessage(event)) {
      this.#wasSpokenTo = this.#hasTurn
      return taken // a message of its own
    }
    return [...taken, ...this.#emit(this.#encode(event), Math.trunc(Number(id)))]
  }

  end(): readonly UIMessageChunk[] {
    return [
      ...this.#emit(this.#shown.end().flatMap((event) => this.#encoder.push(event))),
      ...this.#finish(),
    ]
  }

  /** The thread is at rest, or waits for somebody. */
  async settle(result: SessionResult | undefined): Promise<readonly UIMessageChunk[]> {
    const kept = this.#release() // the message is still in the queue: what runs before it is shown
    const rest = this.#emit(this.#shown.end().flatMap((event) => this.#encoder.push(event)))
    const isWaiting = result?.outcome === 'waiting'
    const below = isWaiting
      ? await approvalsBelow(this.#runtime, this.#thread, result.waiting, this.#shown.view)
      : []
    const asked = isWaiting ? this.#askAgain(result.waiting) : []
    const told = this.#emit([...asked, ...below])
    const finish = isWaiting ? this.#finish('tool-calls') : this.#finish()
    return [...kept, ...rest, ...told, ...finish]
  }

  /** Asks the page again, where more decisions are needed than the one it has given. */
  #askAgain(waiting: readonly WaitingItem[]): readonly UIMessageChunk[] {
    if (!this.#options.continues) return []
    return waiting.flatMap(({ kind, threadId, interruptId: approvalId, toolCallId }) =>
      kind === 'approval' && threadId === this.#thread.id && !this.#asked.has(approvalId)
        ? [{ type: 'tool-approval-request' as const, approvalId, toolCallId }]
        : [],
    )
  }

  /** The thread has read the message: the running turn answers it, or the next one. */
  #take(event: NumberedEvent['event']): readonly UIMessageChunk[] {
    const { queueId } = this.#options
    if (queueId === undefined || event.type !== 'message_added') return []
    if (!('queueId' in event) || event.queueId !== queueId) return []
    if (!this.#isTurnOpen) this.#restart()
    return this.#release()
  }

  #release(): readonly UIMessageChunk[] {
    const kept = this.#kept ?? []
    this.#kept = undefined
    if (kept.length > 0) this.#hasStarted = true
    return kept
  }

  #restart(): void {
    const { registry } = this.#runtime
    this.#shown = new ShownEvents(registry, this.#options)
    this.#encoder = newEncoder(this.#runtime)
    this.#hasTurn = this.#wasSpokenTo = false
    if (this.#kept) this.#kept = []
  }

  #encode(event: NumberedEvent['event']): readonly UIMessageChunk[] {
    return this.#shown
      .push(event)
      .flatMap((shown) => [...this.#encoder.push(shown), ...this.#mark(shown)])
  }

  /** Says of a governed answer that it may be relied on. */
  #mark(event: ThreadEvent): readonly UIMessageChunk[] {
    if (!this.#shown.isGoverned || !isDelivered(event)) return []
    return [{ type: 'message-metadata', messageMetadata: { skein: { isVerified: true } } }]
  }

  #emit(chunks: readonly UIMessageChunk[], seq = Infinity): readonly UIMessageChunk[] {
    const marked = chunks.map((chunk) => (chunk.type === 'start' ? this.#withThread(chunk) : chunk))
    const { continues } = this.#options
    if (continues && seq <= continues.seq) return []
    for (const chunk of marked)
      if (chunk.type === 'tool-approval-request') this.#asked.add(chunk.approvalId)
    if (continues) return this.#continued(marked, continues.messageId)
    if (marked.some(({ type }) => type === 'error')) this.#hasFailed = true
    if (this.#kept) {
      this.#kept.push(...marked)
      return []
    }
    if (marked.length > 0) this.#hasStarted = true
    return marked
  }

  #continued(chunks: readonly UIMessageChunk[], messageId: string): readonly UIMessageChunk[] {
    if (chunks.some(({ type }) => type === 'error')) this.#hasFailed = true
    if (this.#hasStarted || chunks.length === 0) return chunks
    this.#hasStarted = true
    return [{ type: 'start', messageId }, ...chunks]
  }

  #withThread(chunk: Extract<UIMessageChunk, { type: 'start' }>): UIMessageChunk {
    const { messageMetadata, ...start } = chunk
    const skein = {
      threadId: this.#thread.id,
      ...(this.#shown.isGoverned && { isVerified: false }),
    }
    return { ...start, messageMetadata: { ...(messageMetadata as object | undefined), skein } }
  }

  #finish(reason?: 'tool-calls'): readonly UIMessageChunk[] {
    const [...chunks] = this.#encoder.end()
    const finish = chunks.pop()
    const start: UIMessageChunk[] = this.#hasStarted ? [] : this.#emptyStart()
    if (finish?.type !== 'finish')
      return [...start, { type: 'finish', finishReason: 'interrupted' }]
    const told = reason && !this.#hasFailed ? { ...finish, finishReason: reason } : finish
    return [...start, ...chunks, told]
  }

  /** An answer without anything in it; `interrupted` keeps the client from asking again by itself. */
  #emptyStart(): UIMessageChunk[] {
    const messageId = this.#options.continues?.messageId
    return [{ type: 'start', messageId }]
  }
}

function newEncoder({ registry }: Runtime): UIStreamEncoder {
  return new UIStreamEncoder({ agentNames: agentNames(registry) })
}
