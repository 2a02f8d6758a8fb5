import { type JsonObject, type JsonValue, tryParseJson } from '@skein/base'
import type { Runtime, NumberedEvent, SessionResult, ThreadInfo } from '@skein/runtime'
import { ShownEvents } from '../chat/shown-events.ts'
import { untilSettled } from '../chat/until-settled.ts'
import { threadPartId, parseThreadPartId } from '../thread-part-id.ts'
import { restingResult } from '../json-rpc/resting-result.ts'
import { waitingForm, waitingText } from '../json-rpc/waiting-call.ts'
import { withoutUndefined } from '../json-rpc/json-rpc.ts'

/** The message with which a task began. A thread is a context of A2A; each new message in it is a task. */
export interface TaskStart {
  readonly threadId: string
  readonly queueId: string
  /** Number of the event that queued the message. */
  readonly seq: number
}

/** Encodes the id of a task, which contains all that is needed to find it in the log. */
export function taskId({ threadId, queueId, seq }: TaskStart): string {
  return threadPartId('task', threadId, JSON.stringify([queueId, seq]))
}

/** Decodes the id of a task; undefined when this server did not create it. */
export function parseTaskId(id: unknown): TaskStart | undefined {
  const found = typeof id === 'string' ? parseThreadPartId('task', id) : undefined
  const parts = found && tryParseJson(found.part)
  if (!found || !Array.isArray(parts)) return undefined
  const [queueId, seq] = parts as readonly JsonValue[]
  if (typeof queueId !== 'string' || typeof seq !== 'number') return undefined
  if (!Number.isSafeInteger(seq) || seq < 1) return undefined
  return { threadId: found.threadId, queueId, seq }
}

/** Returns the id of the context: the id that the client chose for the thread, or else the id of the thread. */
export function contextId({ clientId, id }: ThreadInfo): string {
  return clientId ?? id
}

/** The states of A2A 1.0 that a task can have here. */
type TaskState = 'SUBMITTED' | 'WORKING' | 'INPUT_REQUIRED' | 'COMPLETED' | 'FAILED' | 'CANCELED'

/** A task, with what it waits for. */
export interface FoundTask {
  /** The task as JSON of A2A 1.0. */
  readonly task: JsonObject
  readonly state: TaskState
  readonly isOver: boolean
  readonly waiting: SessionResult['waiting']
}

const PAGE = 1000

/** Computes a task from the log of its thread. Undefined when the thread has no such message. */
export async function findTask(
  runtime: Runtime,
  thread: ThreadInfo,
  start: TaskStart,
  { now, historyLength }: { readonly now: number; readonly historyLength?: number | undefined },
): Promise<FoundTask | undefined> {
  const fold = new TaskFold(runtime, thread, start)
  for (let after = start.seq - 1; !fold.isOver;) {
    const page = await runtime.threads.events(thread.id, { after, limit: PAGE })
    for (const { event } of page) if (!fold.isOver) fold.push(event)
    if (page.length < PAGE) break
    after = page.at(-1)!.seq
  }
  if (!fold.isKnown) return undefined
  const result = fold.isOver
    ? undefined
    : await restingResult(runtime, await runtime.threads.get(thread.id), now)
  const isWaiting = result?.outcome === 'waiting'
  if (isWaiting) fold.state = 'INPUT_REQUIRED'
  // The runtime has given up the thread, so no event ends the session. The task is marked as failed here.
  if (result?.reason === 'drain_failed') fold.fail(result.text)
  const waiting = isWaiting ? result.waiting : []
  return {
    task: fold.task(waiting, historyLength),
    state: fold.state,
    isOver: fold.isOver,
    waiting,
  }
}

/**
 * Streams a task as events of A2A 1.0: the task as it is, then its changes until it is over or waits for
 * somebody. The text of the answer is sent again from its beginning, so that a reader may join at any time.
 */
export async function* taskEvents(
  runtime: Runtime,
  thread: ThreadInfo,
  start: TaskStart,
  { signal, now }: { readonly signal: AbortSignal; readonly now: () => number },
): AsyncGenerator<JsonObject, void> {
  const { seq } = await runtime.threads.get(thread.id)
  const first = await findTask(runtime, thread, start, { now: now() })
  if (!first) return
  yield { task: first.task }
  const fold = new TaskFold(runtime, thread, start)
  const events = untilSettled(runtime, thread.id, { after: String(start.seq - 1), signal })
  try {
    for (;;) {
      const step = await events.next()
      if (step.done) break
      const isOld = Math.trunc(Number(step.value.id)) <= seq
      for (const update of fold.push(step.value.event))
        if (!isOld || 'artifactUpdate' in update) yield update
      if (fold.isOver) break
    }
  } finally {
    await events.return(undefined)
  }
  if (signal.aborted) return
  const last = await findTask(runtime, thread, start, { now: now() })
  const { id, contextId: context, status } = last?.task ?? first.task
  yield { statusUpdate: { taskId: id ?? '', contextId: context ?? '', status: status ?? {} } }
}

/** Computes a task from the events after the message that began it, for live streams and for stored tasks. */
class TaskFold {
  state: TaskState = 'SUBMITTED'
  isKnown = false
  readonly #start: TaskStart
  readonly #thread: ThreadInfo
  readonly #shown: ShownEvents
  readonly #history: JsonObject[] = []
  #artifact: JsonObject | undefined
  #at = ''
  #isTaken = false
  #isSideA = true
  /** The text of the artifact (the answer of the task), as far as it was sent. */
  #text = ''
  #isFresh = true
  #failure = ''

  constructor({ registry }: Runtime, thread: ThreadInfo, start: TaskStart) {
    this.#start = start
    this.#thread = thread
    this.#shown = new ShownEvents(registry, { hold: true })
  }

  get isOver(): boolean {
    return this.state === 'COMPLETED' || this.state === 'FAILED' || this.state === 'CANCELED'
  }

  fail(reason: string): void {
    this.state = 'FAILED'
    this.#failure = reason
  }

  push(event: NumberedEvent['event']): readonly JsonObject[] {
    const { queueId } = this.#start
    if (event.type === 'message_queued' && event.queueId === queueId) {
      this.isKnown = true
      this.#at = event.at
      this.#note('ROLE_USER', event.message.id, textOf(event.message.content))
      return []
    }
    if (event.type === 'message_unqueued' && event.queueId === queueId)
      return this.#end('CANCELED', event.at)
    if (event.type === 'thread_terminated') return this.#end('CANCELED', event.at)
    const taken = this.#take(event)
    if (!this.#isTaken) return []
    const updates = [...taken, ...this.#shown.push(event).flatMap((one) => this.#show(one))]
    // After a handoff, the session of the next agent continues the task.
    if (event.type !== 'session_end' || event.reason === 'handoff') return updates
    return [...updates, ...this.#endSession(event)]
  }

  /** Returns the task as JSON. */
  task(waiting: SessionResult['waiting'], historyLength: number | undefined): JsonObject {
    const history =
      historyLength === undefined
        ? this.#history
        : historyLength > 0
          ? this.#history.slice(-historyLength)
          : []
    const artifact = this.isOver ? this.#artifact : undefined
    return withoutUndefined({
      ...this.#ids('id'),
      status: { ...this.#status(), ...this.#words(waiting) },
      artifacts: artifact && [artifact],
      history: history.length > 0 ? history : undefined,
    })
  }

  #words(waiting: SessionResult['waiting']): JsonObject {
    const [first] = waiting
    const failed = this.#failure === '' ? [] : [{ text: this.#failure }]
    const asked = first
      ? [
          { text: waiting.map(waitingText).join('\n\n') },
          { data: { waiting: waiting.map(waitingForm) } },
        ]
      : []
    const parts: JsonObject[] = [...failed, ...asked]
    if (parts.length === 0) return {}
    const messageId = first?.interruptId ?? `${this.#start.queueId}-status`
    return { message: { messageId, role: 'ROLE_AGENT', parts, ...this.#ids('taskId') } }
  }

  #ids(name: 'id' | 'taskId'): JsonObject {
    return { [name]: taskId(this.#start), contextId: contextId(this.#thread) }
  }

  #status(): JsonObject {
    return { state: `TASK_STATE_${this.state}`, timestamp: this.#at }
  }

  #take(event: NumberedEvent['event']): readonly JsonObject[] {
    if (event.type !== 'message_added' || !('queueId' in event)) return []
    if (event.queueId !== this.#start.queueId) return []
    this.#isTaken = true
    this.#at = event.at
    this.state = 'WORKING'
    this.#shown.speaks(this.#thread.agent) // an open turn may go on with this message
    return [{ statusUpdate: { ...this.#ids('taskId'), status: this.#status() } }]
  }

  #show(event: ReturnType<ShownEvents['push']>[number]): readonly JsonObject[] {
    switch (event.type) {
      case 'turn_start':
        this.#isSideA = event.agentId.endsWith('/a')
        return []
      case 'step_start':
      case 'step_reset':
        this.#isFresh = true
        return []
      case 'text_delta': {
        if (!this.#isSideA) return []
        const append = !this.#isFresh
        this.#text = append ? this.#text + event.text : event.text
        this.#isFresh = false
        return [this.#artifactUpdate([{ text: event.text }], { append, lastChunk: false })]
      }
      case 'message_added': {
        const { message, agentId } = event
        if (message.type !== 'assistant' || agentId?.endsWith('/a') === false) return []
        this.#at = event.at
        const text = textOf(message.content)
        if (text === '') return []
        this.#note('ROLE_AGENT', message.id, text)
        const isSent = !this.#isFresh && this.#text === text
        this.#text = text
        this.#isFresh = true
        return isSent ? [] : [this.#artifactUpdate([{ text }], { append: false, lastChunk: false })]
      }
      default:
        event satisfies NotShown
        return []
    }
  }

  #endSession(
    event: Extract<NumberedEvent['event'], { type: 'session_end' }>,
  ): readonly JsonObject[] {
    const { outcome, message = this.#text, data, attachments = [], hint, at } = event
    if (outcome === 'failed') this.#failure = [message, hint ?? ''].join(' ').trim()
    if (outcome !== 'completed') return this.#end(outcome === 'failed' ? 'FAILED' : 'CANCELED', at)
    const texts: JsonObject[] = message === '' ? [] : [{ text: message }]
    const parts = data === undefined ? texts : [...texts, { data }]
    if (parts.length === 0) return this.#end('COMPLETED', at)
    const files = attachments.length > 0 ? { metadata: { attachments } } : {}
    const update = this.#artifactUpdate(parts, { append: false, lastChunk: true }, files)
    return [update, ...this.#end('COMPLETED', at)]
  }

  /** Sets the last state, and returns no event: the stream sends the state with what the thread waits for. */
  #end(state: TaskState, at: string): readonly JsonObject[] {
    this.state = state
    this.#at = at
    return []
  }

  #artifactUpdate(
    parts: readonly JsonObject[],
    place: { readonly append: boolean; readonly lastChunk: boolean },
    more: JsonObject = {},
  ): JsonObject {
    const artifact = { artifactId: 'answer', parts, ...more }
    if (place.lastChunk) this.#artifact = artifact
    return { artifactUpdate: { ...this.#ids('taskId'), artifact, ...place } }
  }

  #note(role: 'ROLE_USER' | 'ROLE_AGENT', messageId: string, text: string): void {
    this.#history.push({ messageId, role, parts: [{ text }], ...this.#ids('taskId') })
  }
}

function textOf(content: unknown): string {
  if (!Array.isArray(content)) return ''
  const blocks = content as readonly { readonly type: string; readonly text?: string }[]
  return blocks.map((block) => (block.type === 'text' ? (block.text ?? '') : '')).join('')
}

/** Events that a task does not show. */
// prettier-ignore
type NotShown = Extract<ReturnType<ShownEvents['push']>[number], { type:
  'thread_created' | 'thread_updated' | 'status_changed' | 'message_updated' | 'message_removed' |
  'delivery_changed' | 'turn_end' | 'tool_execution_start' | 'tool_execution_end' |
  'late_result' | 'interrupt_opened' | 'interrupt_answered' | 'subagent_created' |
  'subagent_updated' | 'subagent_ended' | 'agent_handoff' | 'gate_decided' | 'error_raised' |
  'usage_recorded' | 'agent_registered' | 'step_end' | 'reasoning_delta' | 'tool_call_delta' |
  'tool_execution_progress' | 'tool_call_hidden' | 'file_written' | 'file_removed' |
  'source_added' | 'evidence_added' | 'custom_event'
}>
