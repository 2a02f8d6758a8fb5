import { joinPointer, type Converted } from '../../issue.ts'
import { pendingToolCalls } from '../../document/tool-calls.ts'
import type {
  AgentTurn,
  SystemMessage,
  Thread,
  ThreadMessage,
  UserTurn,
} from '../../document/thread.ts'
import type { MessagePart } from '../../document/part.ts'
import { Losses } from '../bridge/walk.ts'
import type { AgUiEvent, AgUiInterrupt, AgUiKnownEvent } from './types.ts'

const NO_PLACE = 'AG-UI has no field for it'

/**
 * Converts a thread to AG-UI events: each agent turn is a run, and a person's input is a message before it.
 */
export function toAgUiEvents(thread: Thread): Converted<AgUiEvent[]> {
  const losses = new Losses()
  losses.rest(thread, '', ['version', 'turns', 'thread_id'], 'AG-UI events carry no thread fields')
  const writer = new EventWriter(thread, losses)
  thread.turns.forEach((turn, index) => {
    const pointer = `/turns/${index}`
    const id = turn.turn_id ?? `${thread.thread_id}:${index}`
    if (turn.turn_type === 'user') writer.userTurn(turn, pointer, id)
    else if (Array.isArray(turn.messages))
      writer.agentTurn(turn, pointer, id, index === thread.turns.length - 1)
    else losses.add(pointer, 'a kind of turn that is not known here')
  })
  return { value: writer.events, lost: losses.list }
}

class EventWriter {
  readonly events: AgUiKnownEvent[] = []
  readonly #thread: Thread
  readonly #losses: Losses
  #timestamp = 0

  constructor(thread: Thread, losses: Losses) {
    this.#thread = thread
    this.#losses = losses
  }

  #emit(...events: readonly AgUiKnownEvent[]): void {
    for (const event of events) this.events.push({ ...event, timestamp: this.#timestamp })
  }

  /**
   * Sets the time of the following events. AG-UI has whole milliseconds in UTC; a time with another zone or
   * precision is reported as a loss.
   */
  #time(text: string, pointer: string): void {
    const time = Date.parse(text)
    if (Number.isNaN(time)) return this.#losses.add(pointer, 'not a time that AG-UI can hold')
    this.#timestamp = time
    if (new Date(time).toISOString() !== text) {
      this.#losses.add(pointer, 'AG-UI keeps milliseconds in UTC')
    }
  }

  userTurn(turn: UserTurn, pointer: string, id: string): void {
    this.#time(turn.submitted_at, joinPointer(pointer, 'submitted_at'))
    this.#losses.rest(turn, pointer, ['turn_type', 'submitted_at', 'parts', 'turn_id'], NO_PLACE)
    turn.parts.forEach((part, index) => {
      const place = joinPointer(pointer, 'parts', index)
      const messageId = index === 0 ? id : `${id}.${index}`
      if (part.part_kind === 'user-prompt') this.#prompt(part, place, messageId)
      else this.#part(part, place, messageId)
    })
  }

  agentTurn(turn: AgentTurn, pointer: string, runId: string, isLast: boolean): void {
    const threadId = this.#thread.thread_id
    this.#time(turn.started_at, joinPointer(pointer, 'started_at'))
    const carried = [
      'turn_type',
      'messages',
      'turn_id',
      'started_at',
      'completed_at',
      'completion_status',
      'interruption',
    ]
    this.#losses.rest(turn, pointer, carried, 'AG-UI runs have no field for it')
    this.#emit({ type: 'RUN_STARTED', threadId, runId })
    turn.messages.forEach((message, index) =>
      this.#message(message, joinPointer(pointer, 'messages', index), `${runId}.${index}`),
    )
    this.#time(turn.completed_at, joinPointer(pointer, 'completed_at'))
    const interrupts = isLast ? this.#interrupts() : []
    if (turn.completion_status === 'interrupted') {
      this.#losses.rest(turn.interruption ?? {}, joinPointer(pointer, 'interruption'), [], NO_PLACE)
      this.#emit({ type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'cancelled' } })
    } else {
      const outcome =
        interrupts.length > 0
          ? ({ type: 'interrupt', interrupts } as const)
          : ({ type: 'success' } as const)
      this.#emit({ type: 'RUN_FINISHED', threadId, runId, outcome })
    }
  }

  /**
   * Returns the calls that are still open at the end of the thread, as the interrupts that the run waits for.
   */
  #interrupts(): AgUiInterrupt[] {
    return pendingToolCalls(this.#thread).map(({ tool_call_id: id }) => ({
      id,
      reason: 'tool_call',
      toolCallId: id,
    }))
  }

  #message(message: ThreadMessage | SystemMessage, pointer: string, id: string): void {
    this.#time(message.timestamp, joinPointer(pointer, 'timestamp'))
    if (message.message_type === 'system') {
      this.#losses.rest(
        message,
        pointer,
        ['message_type', 'timestamp', 'event_type', 'event_data'],
        NO_PLACE,
      )
      return this.#emit({ type: 'CUSTOM', name: message.event_type, value: message.event_data })
    }
    this.#losses.rest(
      message,
      pointer,
      ['message_type', 'timestamp', 'parts', 'agent_id'],
      NO_PLACE,
    )
    const isResponse = message.message_type === 'response'
    if (isResponse) this.#emit({ type: 'STEP_STARTED', stepName: id })
    message.parts.forEach((part, index) => {
      const place = joinPointer(pointer, 'parts', index)
      if (part.part_kind === 'user-prompt') this.#prompt(part, place, `${id}.${index}`)
      else this.#part(part, place, `${id}.${index}`, message.agent_id)
    })
    if (isResponse) this.#emit({ type: 'STEP_FINISHED', stepName: id })
  }

  #prompt(
    part: MessagePart & { part_kind: 'user-prompt' },
    pointer: string,
    messageId: string,
  ): void {
    this.#losses.rest(part, pointer, ['part_kind', 'content'], NO_PLACE)
    const { content } = part
    if (typeof content !== 'string') {
      content.forEach((item, index) => {
        if (typeof item !== 'string')
          this.#losses.add(
            joinPointer(pointer, 'content', index),
            'AG-UI text messages hold text only',
          )
      })
      this.#losses.add(
        joinPointer(pointer, 'content'),
        'the borders between content items are not kept',
      )
    }
    const text =
      typeof content === 'string'
        ? content
        : content.filter((item) => typeof item === 'string').join('\n')
    this.#text('user', text, messageId)
  }

  #text(role: 'user' | 'assistant', delta: string, messageId: string, name?: string): void {
    this.#emit({ type: 'TEXT_MESSAGE_START', messageId, role, name })
    // AG-UI does not allow an empty delta.
    if (delta !== '') this.#emit({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })
    this.#emit({ type: 'TEXT_MESSAGE_END', messageId })
  }

  #part(
    part: Exclude<MessagePart, { part_kind: 'user-prompt' }>,
    pointer: string,
    id: string,
    agentId?: string,
  ): void {
    const report = (...carried: string[]) =>
      this.#losses.rest(part, pointer, ['part_kind', ...carried], NO_PLACE)
    switch (part.part_kind) {
      case 'text':
        report('content')
        return this.#text('assistant', part.content, id, agentId)
      case 'thinking':
        report('content', 'signature')
        return this.#thinking(part.content ?? '', part.signature, id)
      case 'tool-call':
        report('tool_call_id', 'tool_name', 'args')
        return this.#call(part, pointer)
      case 'tool-return':
      case 'retry-prompt':
        return this.#result(part, pointer, id)
      case 'file':
      case 'builtin-tool-call':
      case 'builtin-tool-return':
      case 'compaction':
      case 'speech':
      case 'tool-availability-delta':
        return this.#losses.add(pointer, `AG-UI has no event for a ${part.part_kind} part`)
      default: {
        const { part_kind } = part satisfies never as { part_kind: string }
        this.#losses.add(pointer, `AG-UI has no event for a ${part_kind} part`)
      }
    }
  }

  #thinking(delta: string, signature: string | null | undefined, messageId: string): void {
    this.#emit(
      { type: 'REASONING_START', messageId },
      { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning' },
    )
    if (delta !== '') this.#emit({ type: 'REASONING_MESSAGE_CONTENT', messageId, delta })
    this.#emit({ type: 'REASONING_MESSAGE_END', messageId }, { type: 'REASONING_END', messageId })
    if (signature == null) return
    this.#emit({
      type: 'REASONING_ENCRYPTED_VALUE',
      subtype: 'message',
      entityId: messageId,
      encryptedValue: signature,
    })
  }

  #call(
    {
      tool_call_id: toolCallId,
      tool_name: toolCallName,
      args,
    }: MessagePart & { part_kind: 'tool-call' },
    pointer: string,
  ): void {
    if (typeof args !== 'string')
      this.#losses.add(joinPointer(pointer, 'args'), 'arguments become JSON text')
    const delta = typeof args === 'string' ? args : JSON.stringify(args ?? {})
    this.#emit({ type: 'TOOL_CALL_START', toolCallId, toolCallName })
    if (delta !== '') this.#emit({ type: 'TOOL_CALL_ARGS', toolCallId, delta })
    this.#emit({ type: 'TOOL_CALL_END', toolCallId })
  }

  #result(
    part: MessagePart & { part_kind: 'tool-return' | 'retry-prompt' },
    pointer: string,
    messageId: string,
  ): void {
    this.#losses.rest(
      part,
      pointer,
      ['part_kind', 'tool_call_id', 'tool_name', 'content', 'status'],
      NO_PLACE,
    )
    if (part.part_kind === 'retry-prompt')
      this.#losses.add(joinPointer(pointer, 'part_kind'), 'a retry becomes a result')
    else if (part.status !== 'success')
      this.#losses.add(joinPointer(pointer, 'status'), 'an error becomes a result like any other')
    if (typeof part.content !== 'string')
      this.#losses.add(joinPointer(pointer, 'content'), 'the result becomes JSON text')
    const content = typeof part.content === 'string' ? part.content : JSON.stringify(part.content)
    this.#emit({
      type: 'TOOL_CALL_RESULT',
      messageId,
      toolCallId: part.tool_call_id ?? '',
      content,
      role: 'tool',
    })
  }
}
