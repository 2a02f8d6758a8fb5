import type { Converted } from '../../issue.ts'
import type { AgentTurn, Thread } from '../../document/thread.ts'
import type { MessagePart } from '../../document/part.ts'
import { ThreadBuilder, type ImportOptions } from '../bridge/build.ts'
import { Losses } from '../bridge/walk.ts'
import type { AgUiEvent, AgUiKnownEvent, AgUiOutcome } from './types.ts'

/**
 * Converts AG-UI events to a thread: each run becomes one turn. Events that are not part of the conversation
 * are kept whole, as system events.
 */
export function fromAgUiEvents(
  events: Iterable<AgUiEvent>,
  options?: ImportOptions,
): Converted<Thread> {
  const reader = new EventReader(options)
  for (const event of events) reader.read(event as AgUiKnownEvent)
  return reader.end()
}

/** A part that is still being streamed. */
interface Draft {
  readonly part_kind: string
  readonly tool_name?: string
  readonly tool_call_id?: string
  content?: string
  args?: string
  signature?: string
}

class EventReader {
  readonly #builder: ThreadBuilder
  readonly #losses = new Losses()
  readonly #names = new Map<string, string>()
  /** Parts that are being streamed, and finished parts for which a signature may still arrive. */
  readonly #drafts = new Map<string, Draft>()
  readonly #roles = new Map<string, string>()
  #answer: MessagePart[] = []
  #results: MessagePart[] = []
  #at: string | undefined
  #answeredAt: string | undefined
  #resultsAt: string | undefined
  #startedAt: string | undefined
  #runId: string | undefined
  #chunk: string | undefined
  #count = 0

  constructor(options: ImportOptions | undefined) {
    this.#builder = new ThreadBuilder(options)
  }

  read(event: AgUiKnownEvent): void {
    const { timestamp } = event
    if (typeof timestamp === 'number') this.#at = new Date(timestamp).toISOString()
    this.#count++
    switch (event.type) {
      case 'RUN_STARTED':
        this.#endRun()
        this.#runId = event.runId
        this.#startedAt = this.#at
        return
      case 'RUN_FINISHED':
        return this.#finishRun(event.outcome)
      case 'RUN_ERROR':
        this.#flush()
        this.#builder.event('stream.error', { message: event.message, code: event.code }, this.#at)
        return this.#endRun(interrupted('error', this.#at))
      case 'STEP_STARTED':
        return this.#flush()
      case 'STEP_FINISHED':
      case 'REASONING_START':
      case 'REASONING_END':
      case 'REASONING_MESSAGE_END':
      case 'TOOL_CALL_END':
        return
      case 'TEXT_MESSAGE_START':
        return this.#startText(event.messageId, event.role ?? 'assistant', event.name)
      case 'TEXT_MESSAGE_CONTENT':
        return this.#append(event.messageId, event.delta)
      case 'TEXT_MESSAGE_END':
        return this.#endText(event.messageId)
      case 'TEXT_MESSAGE_CHUNK':
        return this.#textChunk(event)
      case 'REASONING_MESSAGE_START':
        return this.#add(`r:${event.messageId}`, { part_kind: 'thinking', content: '' })
      case 'REASONING_MESSAGE_CONTENT':
        return this.#append(`r:${event.messageId}`, event.delta)
      case 'REASONING_ENCRYPTED_VALUE': {
        const draft =
          this.#drafts.get(`r:${event.entityId}`) ?? this.#drafts.get(`c:${event.entityId}`)
        if (draft) draft.signature = event.encryptedValue
        else this.#other(event as unknown as AgUiEvent)
        return
      }
      case 'TOOL_CALL_START':
        return this.#startCall(event.toolCallId, event.toolCallName)
      case 'TOOL_CALL_ARGS':
        return this.#append(`c:${event.toolCallId}`, event.delta)
      case 'TOOL_CALL_CHUNK': {
        const { toolCallId = this.#chunk, toolCallName, delta } = event
        if (toolCallId === undefined) return
        this.#chunk = toolCallId
        if (!this.#drafts.has(`c:${toolCallId}`)) this.#startCall(toolCallId, toolCallName ?? '')
        if (delta !== undefined) this.#append(`c:${toolCallId}`, delta)
        return
      }
      case 'TOOL_CALL_RESULT':
        return this.#result(event.toolCallId, event.content)
      case 'CUSTOM':
        this.#flush()
        return this.#builder.event(event.name, event.value, this.#at)
      default:
        return this.#other(event as AgUiEvent)
    }
  }

  end(): Converted<Thread> {
    // A run without RUN_FINISHED or RUN_ERROR was cut off.
    if (this.#runId !== undefined) this.#endRun(interrupted('network_failure', this.#at))
    this.#flush()
    return { value: this.#builder.build(), lost: this.#losses.list }
  }

  #startText(id: string, role: string, name: string | undefined): void {
    this.#roles.set(id, role)
    if (role !== 'assistant') {
      this.#drafts.set(id, { part_kind: 'user-prompt', content: '' })
      return
    }
    if (name !== undefined && name !== this.#builder.agentId && this.#answer.length === 0)
      this.#builder.speaker(name)
    this.#add(id, { part_kind: 'text', content: '' })
  }

  #endText(id: string): void {
    const role = this.#roles.get(id)
    if (role === 'assistant' || role === undefined) return
    const content = this.#drafts.get(id)?.content ?? ''
    this.#flush()
    const part: MessagePart = { part_kind: 'user-prompt', content }
    if (role !== 'user')
      this.#losses.add(
        `/${this.#count - 1}`,
        `a ${role} message is configuration and is not stored in a thread`,
      )
    else if (this.#runId === undefined) this.#builder.user([part], this.#at, { turn_id: id })
    else this.#builder.request([part], this.#at)
  }

  #textChunk(event: Extract<AgUiKnownEvent, { type: 'TEXT_MESSAGE_CHUNK' }>): void {
    const id = event.messageId ?? this.#chunk
    if (id === undefined) return
    this.#chunk = id
    if (!this.#drafts.has(id)) this.#startText(id, event.role ?? 'assistant', event.name)
    if (event.delta !== undefined) this.#append(id, event.delta)
  }

  #startCall(id: string, name: string): void {
    this.#names.set(id, name)
    this.#add(`c:${id}`, {
      part_kind: 'tool-call',
      tool_name: name,
      tool_call_id: id,
      args: '',
    })
  }

  #result(id: string, content: string): void {
    const tool_name = this.#names.get(id) ?? ''
    if (this.#results.length === 0) this.#resultsAt = this.#at
    this.#results.push({
      part_kind: 'tool-return',
      tool_name,
      tool_call_id: id,
      status: 'success',
      content,
    })
  }

  #add(key: string, draft: Draft): void {
    // Content that the model sends after tool results belongs to its next response.
    if (this.#results.length > 0) this.#flush()
    if (this.#answer.length === 0) this.#answeredAt = this.#at
    this.#drafts.set(key, draft)
    // The cast is safe, because a draft has the fields of its part kind.
    this.#answer.push(draft as unknown as MessagePart)
  }

  #append(key: string, delta: string): void {
    const draft = this.#drafts.get(key)
    if (!draft)
      return this.#losses.add(`/${this.#count - 1}`, 'a delta for something that was never started')
    if (draft.part_kind === 'tool-call') draft.args += delta
    else draft.content += delta
  }

  #other(event: AgUiEvent): void {
    this.#flush()
    const { type, timestamp: _, ...data } = event as { type: string; timestamp?: number }
    this.#builder.event(`ag-ui.${type}`, data, this.#at)
  }

  #flush(): void {
    if (this.#answer.length > 0) this.#builder.response(this.#answer, this.#answeredAt)
    if (this.#results.length > 0) this.#builder.request(this.#results, this.#resultsAt)
    this.#answer = []
    this.#results = []
  }

  #finishRun(outcome: AgUiOutcome | undefined): void {
    this.#endRun(outcome?.type === 'cancelled' ? interrupted('user_cancelled', this.#at) : {})
  }

  #endRun(fields: Partial<AgentTurn> = {}): void {
    this.#flush()
    const run = this.#runId === undefined ? {} : { turn_id: this.#runId, ...this.#times() }
    this.#runId = undefined
    this.#builder.endTurn({ ...run, ...fields })
  }

  /** Returns the fields with the start and end of the run, if its events have times. */
  #times(): Partial<AgentTurn> {
    if (this.#startedAt === undefined || this.#at === undefined) return {}
    return { started_at: this.#startedAt, completed_at: this.#at }
  }
}

function interrupted(reason: string, at: string | undefined): Partial<AgentTurn> {
  if (at === undefined) return { completion_status: 'interrupted' }
  return { completion_status: 'interrupted', interruption: { reason, interrupted_at: at } }
}
