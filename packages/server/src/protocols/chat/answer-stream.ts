import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import type { ThreadEvent } from '@skein/threads'
import { type UIMessageChunk, UIStreamEncoder } from '@skein/threads/ai-sdk'
import type { NumberedEvent, Runtime, SessionResult, WaitingItem } from '@skein/runtime'
import { agentNames, reasonOf } from './chat-view.ts'
import { isDelivered } from './hold-back.ts'
import { isShownUserMessage } from './visible-events.ts'
import { ShownEvents } from './shown-events.ts'
import { approvalsBelow } from './approvals-below.ts'
import { ChildChunks } from './children.ts'
import { untilSettled } from './until-settled.ts'

/** Which answer of a thread is streamed, and which part of it the client already has. */
export interface AnswerStreamOptions {
  /** Number of the event after which the answer, or the message that leads to it, begins. */
  readonly after: number
  /** The message to be answered; it may still be in the queue. */
  readonly queueId?: string
  /** The message that the client continues, and the number of the last event that it contains. */
  readonly continues?: { readonly messageId: string; readonly seq: number }
  /** Whether text of agents whose answers are checked (governed agents) is held back until the checks have passed. */
  readonly hold: boolean
  /** Whether the output of children is sent, as `data-child-chunk`. */
  readonly children?: boolean
  readonly signal: AbortSignal
}

/**
 * Streams one answer, while it is written, as chunks of the UI message stream, from `start` to `finish`. The
 * stream ends when the thread is at rest, when a person has to answer, or when the next answer begins.
 */
export function answerStream(
  runtime: Runtime,
  thread: ThreadIdentity,
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
  thread: ThreadIdentity,
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
  readonly #thread: ThreadIdentity
  readonly #options: AnswerStreamOptions
  #encoder: UIStreamEncoder
  #shown: ShownEvents
  /** Chunks that are buffered until it is certain that they belong to the requested answer. */
  #kept: UIMessageChunk[] | undefined
  #hasStarted = false
  #hasTurn = false
  #isTurnOpen = false
  #wasSpokenTo = false
  #hasFailed = false
  /** Ids of the approvals that this response has asked for. */
  readonly #asked = new Set<string>()

  constructor(runtime: Runtime, thread: ThreadIdentity, options: AnswerStreamOptions) {
    this.#runtime = runtime
    this.#thread = thread
    this.#options = options
    this.#shown = new ShownEvents(runtime.registry, options)
    this.#encoder = newEncoder(runtime)
    if (options.queueId !== undefined) this.#kept = []
  }

  /**
   * Whether another answer begins with this event. If the thread has not read the message to be answered yet,
   * starts the output again and returns false.
   */
  isNext(event: NumberedEvent['event']): boolean {
    if (event.type !== 'turn_start' || !this.#hasTurn || !this.#wasSpokenTo) return false
    if (this.#kept === undefined) return true
    this.#restart()
    return false
  }

  push({ id, event }: NumberedEvent): readonly UIMessageChunk[] {
    const shownEvents = this.#take(event)
    if (event.type === 'turn_start') this.#hasTurn = this.#isTurnOpen = true
    if (event.type === 'turn_end') this.#isTurnOpen = false
    if (isShownUserMessage(event)) {
      this.#wasSpokenTo = this.#hasTurn
      return shownEvents // a user message is not part of the answer
    }
    return [...shownEvents, ...this.#emit(this.#encode(event), Math.trunc(Number(id)))]
  }

  end(): readonly UIMessageChunk[] {
    return [
      ...this.#emit(this.#shown.end().flatMap((event) => this.#encoder.push(event))),
      ...this.#finish(),
    ]
  }

  /** Ends the answer when the thread is at rest or waits for a person. */
  async settle(result: SessionResult | undefined): Promise<readonly UIMessageChunk[]> {
    const releasedChunks = this.#release() // shows the turns before a message that is still in the queue
    const rest = this.#emit(this.#shown.end().flatMap((event) => this.#encoder.push(event)))
    const isWaiting = result?.outcome === 'waiting'
    const below = isWaiting
      ? await approvalsBelow(this.#runtime, this.#thread, result.waiting, this.#shown.view)
      : []
    const questions = isWaiting ? this.#askAgain(result.waiting) : []
    const hasQuestions = this.#emit([...questions, ...below])
    const finish = isWaiting ? this.#finish('tool-calls') : this.#finish()
    return [...releasedChunks, ...rest, ...hasQuestions, ...finish]
  }

  /** Asks the page again when an approval needs decisions of more people than the page has sent. */
  #askAgain(waiting: readonly WaitingItem[]): readonly UIMessageChunk[] {
    if (!this.#options.continues) return []
    return waiting.flatMap(({ kind, threadId, interruptId: approvalId, toolCallId, ...item }) => {
      const isOwn = kind === 'approval' && threadId === this.#thread.id
      if (!isOwn || this.#asked.has(approvalId)) return []
      const reason = reasonOf('', item.isIrreversible)
      return [{ type: 'tool-approval-request' as const, approvalId, toolCallId, reason }]
    })
  }

  /**
   * Notices when the thread reads the message to be answered: if a turn is open, that turn answers it, otherwise
   * the next turn does.
   */
  #take(event: NumberedEvent['event']): readonly UIMessageChunk[] {
    const { queueId } = this.#options
    if (queueId === undefined || event.type !== 'message_added') return []
    if (!('queueId' in event) || event.queueId !== queueId) return []
    if (!this.#isTurnOpen) this.#restart()
    return this.#release()
  }

  #release(): readonly UIMessageChunk[] {
    const chunks = this.#kept ?? []
    this.#kept = undefined
    if (chunks.length > 0) this.#hasStarted = true
    return chunks
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

  /** Marks an answer as verified once the governor has delivered it. */
  #mark(event: ThreadEvent): readonly UIMessageChunk[] {
    if (!this.#shown.isGoverned || !isDelivered(event)) return []
    return [{ type: 'message-metadata', messageMetadata: { skein: { isVerified: true } } }]
  }

  #emit(chunks: readonly UIMessageChunk[], seq = Infinity): readonly UIMessageChunk[] {
    const withIds = chunks.map((chunk) =>
      chunk.type === 'start' ? this.#withThread(chunk) : chunk,
    )
    const { continues } = this.#options
    if (continues && seq <= continues.seq) return []
    for (const chunk of withIds)
      if (chunk.type === 'tool-approval-request') this.#asked.add(chunk.approvalId)
    if (continues) return this.#continued(withIds, continues.messageId)
    if (withIds.some(({ type }) => type === 'error')) this.#hasFailed = true
    if (this.#kept) {
      this.#kept.push(...withIds)
      return []
    }
    if (withIds.length > 0) this.#hasStarted = true
    return withIds
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
    const lastChunk = reason && !this.#hasFailed ? { ...finish, finishReason: reason } : finish
    return [...start, ...chunks, lastChunk]
  }

  /** Returns the first chunk of an answer without content. */
  #emptyStart(): UIMessageChunk[] {
    const messageId = this.#options.continues?.messageId
    return [{ type: 'start', messageId }]
  }
}

function newEncoder({ registry }: Runtime): UIStreamEncoder {
  return new UIStreamEncoder({ agentNames: agentNames(registry) })
}
