import { joinPointer, type Converted } from '../../issue.ts'
import { instantOf } from '../../document/timestamp.ts'
import { pendingToolCalls } from '../../document/tool-calls.ts'
import type {
  AgentTurn,
  SystemMessage,
  Thread,
  ThreadMessage,
  Usage,
  UserTurn,
} from '../../document/thread.ts'
import type { MessagePart } from '../../document/part.ts'
import { Losses } from '../bridge/walk.ts'
import { carry } from '../ai-sdk/carrier.ts'
import type { TextUIPart, UIMessageChunk } from '../ai-sdk/types.ts'
import { AgUiStreamEncoder } from './encode.ts'
import { fileContent } from './message-list.ts'
import {
  type AgUiContentPart,
  type AgUiEvent,
  type AgUiMessage,
  type AgUiOutcome,
  type AgUiUsage,
  USAGE,
} from './types.ts'

const NO_PLACE = 'AG-UI has no field for it'

/**
 * Converts a thread to AG-UI events: each agent turn is a run, and what a person said before it is in the
 * `input` of its `RUN_STARTED`, because a stream must begin with that event. What was said after the last
 * agent turn becomes a run without an answer. The events are made by the encoder of live runs.
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
  writer.end()
  return { value: writer.events, lost: losses.list }
}

class EventWriter {
  readonly events: AgUiEvent[] = []
  readonly #thread: Thread
  readonly #losses: Losses
  #timestamp = 0
  /** What people said since the last run. */
  #asked: AgUiMessage[] = []
  #run = new AgUiStreamEncoder({ threadId: '', runId: '' })

  constructor(thread: Thread, losses: Losses) {
    this.#thread = thread
    this.#losses = losses
  }

  #emit(events: readonly AgUiEvent[]): void {
    for (const event of events) this.events.push({ ...event, timestamp: this.#timestamp })
  }

  #push(...chunks: readonly UIMessageChunk[]): void {
    for (const chunk of chunks) this.#emit(this.#run.push(chunk))
  }

  /**
   * Sets the time of the following events. AG-UI has whole milliseconds in UTC; a time with another zone or
   * precision is reported as a loss.
   */
  #time(text: string, pointer: string): void {
    const time = Math.floor(instantOf(text) / 1000)
    if (Number.isNaN(time)) return this.#losses.add(pointer, 'not a time that AG-UI can hold')
    this.#timestamp = time
    if (new Date(time).toISOString() !== text) {
      this.#losses.add(pointer, 'AG-UI keeps milliseconds in UTC')
    }
  }

  userTurn(turn: UserTurn, pointer: string, id: string): void {
    this.#time(turn.submitted_at, joinPointer(pointer, 'submitted_at'))
    this.#losses.rest(turn, pointer, ['turn_type', 'submitted_at', 'parts', 'turn_id'], NO_PLACE)
    const submitted_at = new Date(this.#timestamp).toISOString()
    turn.parts.forEach((part, index) => {
      const place = joinPointer(pointer, 'parts', index)
      if (part.part_kind !== 'user-prompt')
        return this.#losses.add(place, `AG-UI has no message for a ${part.part_kind} part`)
      if (index > 0) this.#losses.add(place, 'it becomes a message of its own')
      this.#asked.push({
        id: index === 0 ? id : `${id}.${index}`,
        role: 'user',
        content: this.#content(part, place),
        metadata: { threadprotocol: { submitted_at } },
      })
    })
  }

  /** Ends with a run that has only a question, if the last turn is a person's. */
  end(): void {
    if (this.#asked.length === 0) return
    this.#startRun(`${this.#asked.at(-1)!.id}:run`)
    this.#emit(this.#run.end())
  }

  #startRun(runId: string): void {
    const { thread_id: threadId } = this.#thread
    this.#run = new AgUiStreamEncoder({ threadId, runId, asked: this.#asked.splice(0) })
    this.#emit(this.#run.start())
  }

  agentTurn(turn: AgentTurn, pointer: string, runId: string, isLast: boolean): void {
    this.#time(turn.started_at, joinPointer(pointer, 'started_at'))
    const carriedFields = [
      'turn_type',
      'messages',
      'turn_id',
      'started_at',
      'completed_at',
      'completion_status',
      'interruption',
      'total_usage',
    ]
    this.#losses.rest(turn, pointer, carriedFields, 'AG-UI runs have no field for it')
    this.#startRun(runId)
    turn.messages.forEach((message, index) =>
      this.#message(message, joinPointer(pointer, 'messages', index), `${runId}.${index}`),
    )
    this.#time(turn.completed_at, joinPointer(pointer, 'completed_at'))
    const usage = this.#usage(turn.total_usage, joinPointer(pointer, 'total_usage'))
    const isCancelled = turn.completion_status === 'interrupted'
    if (isCancelled)
      this.#losses.rest(turn.interruption ?? {}, joinPointer(pointer, 'interruption'), [], NO_PLACE)
    const outcome = isCancelled ? ({ type: 'cancelled' } as const) : this.#outcome(isLast)
    this.#emit(this.#run.end(outcome, usage))
  }

  #usage(usage: Usage | null | undefined, pointer: string): readonly AgUiUsage[] | undefined {
    if (!usage) return undefined
    this.#losses.rest(usage, pointer, Object.keys(USAGE), NO_PLACE)
    const counters = Object.entries(USAGE).flatMap(([name, field]) => {
      const count = usage[name as keyof typeof USAGE]
      return typeof count === 'number' ? [[field, count] as const] : []
    })
    return [Object.fromEntries(counters)]
  }

  /** Calls that are still open at the end of the thread are the interrupts that the last run waits for. */
  #outcome(isLast: boolean): AgUiOutcome {
    const interrupts = (isLast ? pendingToolCalls(this.#thread) : []).map(
      ({ tool_call_id: id }) => ({ id, reason: 'tool_call', toolCallId: id }),
    )
    return interrupts.length > 0 ? { type: 'interrupt', interrupts } : { type: 'success' }
  }

  #message(message: ThreadMessage | SystemMessage, pointer: string, id: string): void {
    this.#time(message.timestamp, joinPointer(pointer, 'timestamp'))
    if (message.message_type === 'system') {
      const carriedFields = ['message_type', 'timestamp', 'event_type', 'event_data']
      this.#losses.rest(message, pointer, carriedFields, NO_PLACE)
      return this.#push({ type: `data-${message.event_type}`, data: message.event_data })
    }
    const carriedFields = ['message_type', 'timestamp', 'parts', 'agent_id']
    this.#losses.rest(message, pointer, carriedFields, NO_PLACE)
    const isResponse = message.message_type === 'response'
    if (isResponse) this.#push({ type: 'start-step' })
    message.parts.forEach((part, index) => {
      const place = joinPointer(pointer, 'parts', index)
      if (part.part_kind === 'user-prompt') this.#prompt(part, place, `${id}.${index}`)
      else this.#part(part, place, `${id}.${index}`, message.agent_id)
    })
    if (isResponse) this.#push({ type: 'finish-step' })
  }

  #prompt(
    part: MessagePart & { part_kind: 'user-prompt' },
    pointer: string,
    messageId: string,
  ): void {
    const content = this.#content(part, pointer)
    const say = (text: string): void => {
      const parts: TextUIPart[] = [{ type: 'text', text }]
      this.#push({ type: 'steering-message', id: messageId, parts })
    }
    if (typeof content === 'string') return say(content)
    // A streamed message has only text.
    const text = content.flatMap((item, index) => {
      if (item.type === 'text') return [item.text]
      this.#losses.add(joinPointer(pointer, 'content', index), 'AG-UI streams text only')
      return []
    })
    const reason = 'the borders between content items are not kept'
    this.#losses.add(joinPointer(pointer, 'content'), reason)
    say(text.join('\n'))
  }

  /** Converts a prompt to the content of a message; text, images, audio, video and documents are kept. */
  #content(
    part: MessagePart & { part_kind: 'user-prompt' },
    pointer: string,
  ): string | readonly AgUiContentPart[] {
    this.#losses.rest(part, pointer, ['part_kind', 'content'], NO_PLACE)
    const { content } = part
    if (typeof content === 'string') return content
    return content.flatMap((item, index): AgUiContentPart[] => {
      if (typeof item === 'string') return [{ type: 'text', text: item }]
      const place = joinPointer(pointer, 'content', index)
      const file = fileContent(item)
      if (!file) this.#losses.add(place, `AG-UI has no content of the kind ${item.kind}`)
      else this.#losses.rest(item, place, ['kind', 'url', 'data', 'media_type'], NO_PLACE)
      return file ? [file] : []
    })
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
        return this.#push(
          { type: 'text-start', id, providerMetadata: carry({ agent_id: agentId }) },
          { type: 'text-delta', id, delta: part.content },
          { type: 'text-end', id },
        )
      case 'thinking': {
        report('content', 'signature')
        const { signature } = part
        return this.#push(
          { type: 'reasoning-start', id },
          { type: 'reasoning-delta', id, delta: part.content ?? '' },
          { type: 'reasoning-end', id, providerMetadata: carry({ part: { signature } }) },
        )
      }
      case 'tool-call':
        report('tool_call_id', 'tool_name', 'args')
        return this.#call(part, pointer)
      case 'tool-return':
      case 'retry-prompt':
        return this.#result(part, pointer)
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

  #call(part: MessagePart & { part_kind: 'tool-call' }, pointer: string): void {
    const { tool_call_id: toolCallId, tool_name: toolName, args: input } = part
    if (typeof input !== 'string')
      this.#losses.add(joinPointer(pointer, 'args'), 'arguments become JSON text')
    this.#push({ type: 'tool-input-available', toolCallId, toolName, input })
  }

  #result(
    part: MessagePart & { part_kind: 'tool-return' | 'retry-prompt' },
    pointer: string,
  ): void {
    const carriedFields = ['part_kind', 'tool_call_id', 'tool_name', 'content', 'status']
    this.#losses.rest(part, pointer, carriedFields, NO_PLACE)
    if (part.part_kind === 'retry-prompt')
      this.#losses.add(joinPointer(pointer, 'part_kind'), 'a retry becomes a result')
    else if (part.status === 'validation_error')
      this.#losses.add(joinPointer(pointer, 'status'), 'AG-UI knows one kind of error')
    const isError = part.part_kind === 'retry-prompt' || part.status !== 'success'
    const { content: output } = part
    const toolCallId = part.tool_call_id ?? ''
    if (typeof output !== 'string')
      this.#losses.add(joinPointer(pointer, 'content'), 'the result becomes JSON text')
    if (!isError) return this.#push({ type: 'tool-output-available', toolCallId, output })
    const errorText = typeof output === 'string' ? output : JSON.stringify(output)
    this.#push({ type: 'tool-output-error', toolCallId, errorText })
  }
}
