import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import type { JsonObject } from '@skein/base'
import type { NumberedEvent, Runtime, SessionResult } from '@skein/runtime'
import { contextId, taskId, type TaskStart } from './task-id.ts'
import { ShownEvents } from '../chat/shown-events.ts'
import { withoutUndefined } from '../json-rpc/json-rpc.ts'
import { waitingForm, waitingText } from '../json-rpc/waiting-call.ts'

/** The states of A2A 1.0 that a task can have here. */
export type TaskState =
  'SUBMITTED' | 'WORKING' | 'INPUT_REQUIRED' | 'COMPLETED' | 'FAILED' | 'CANCELED'

/** Computes a task from the events after the message that began it, for live streams and for stored tasks. */
export class TaskFold {
  state: TaskState = 'SUBMITTED'
  isKnown = false
  readonly #start: TaskStart
  readonly #thread: ThreadIdentity
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

  constructor({ registry }: Runtime, thread: ThreadIdentity, start: TaskStart) {
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
    const parts = this.#take(event)
    if (!this.#isTaken) return []
    const updates = [...parts, ...this.#shown.push(event).flatMap((one) => this.#show(one))]
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
    const failureParts = this.#failure === '' ? [] : [{ text: this.#failure }]
    const questionParts = first
      ? [
          { text: waiting.map(waitingText).join('\n\n') },
          { data: { waiting: waiting.map(waitingForm) } },
        ]
      : []
    const parts: JsonObject[] = [...failureParts, ...questionParts]
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
