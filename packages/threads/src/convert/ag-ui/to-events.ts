import { joinPointer, type Converted } from '../../issue.ts'
import { pendingToolCalls } from '../../document/tool-calls.ts'
import type {
  AgentTurn,
  SystemMessage,
  Thread,
  ThreadMessage,
  Usage,
  UserTurn,
} from '../../document/thread.ts'
import type { MessagePart, MultiModalContent } from '../../document/part.ts'
import { Losses } from '../bridge/walk.ts'
import {
  AG_UI_VERSION,
  type AgUiContentPart,
  type AgUiEvent,
  type AgUiInterrupt,
  type AgUiKnownEvent,
  type AgUiMessage,
  type AgUiUsage,
} from './types.ts'

const NO_PLACE = 'AG-UI has no field for it'

/**
 * Converts a thread to AG-UI events: each agent turn is a run, and what a person said before it is in the
 * `input` of its `RUN_STARTED`, because a stream must begin with that event. What was said after the last
 * agent turn becomes a run without an answer.
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
  readonly events: AgUiKnownEvent[] = []
  readonly #thread: Thread
  readonly #losses: Losses
  #timestamp = 0
  /** What people said since the last run. */
  #asked: AgUiMessage[] = []
  /** The message that holds the calls of a response. */
  #parent: string | undefined

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
    const runId = `${this.#asked.at(-1)!.id}:run`
    const { thread_id: threadId } = this.#thread
    this.#startRun(runId)
    this.#emit({ type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'success' } })
  }

  #startRun(runId: string): void {
    const { thread_id: threadId } = this.#thread
    const messages = this.#asked.splice(0)
    const input = messages.length > 0 ? { input: { threadId, runId, messages } } : {}
    const protocolVersion = AG_UI_VERSION
    this.#emit({ type: 'RUN_STARTED', threadId, runId, protocolVersion, ...input })
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
      'total_usage',
    ]
    this.#losses.rest(turn, pointer, carried, 'AG-UI runs have no field for it')
    this.#startRun(runId)
    turn.messages.forEach((message, index) =>
      this.#message(message, joinPointer(pointer, 'messages', index), `${runId}.${index}`),
    )
    this.#time(turn.completed_at, joinPointer(pointer, 'completed_at'))
    const interrupts = isLast ? this.#interrupts() : []
    const usage = this.#usage(turn.total_usage, joinPointer(pointer, 'total_usage'))
    if (turn.completion_status === 'interrupted') {
      this.#losses.rest(turn.interruption ?? {}, joinPointer(pointer, 'interruption'), [], NO_PLACE)
      this.#emit({
        type: 'RUN_FINISHED',
        threadId,
        runId,
        outcome: { type: 'cancelled' },
        ...usage,
      })
    } else {
      const outcome =
        interrupts.length > 0
          ? ({ type: 'interrupt', interrupts } as const)
          : ({ type: 'success' } as const)
      this.#emit({ type: 'RUN_FINISHED', threadId, runId, outcome, ...usage })
    }
  }

  #usage(
    usage: Usage | null | undefined,
    pointer: string,
  ): { readonly usage?: readonly AgUiUsage[] } {
    if (!usage) return {}
    this.#losses.rest(usage, pointer, Object.keys(USAGE), NO_PLACE)
    const counters = Object.entries(USAGE).flatMap(([name, field]) => {
      const count = usage[name as keyof typeof USAGE]
      return typeof count === 'number' ? [[field, count] as const] : []
    })
    return { usage: [Object.fromEntries(counters)] }
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
    this.#parent = undefined
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
    const content = this.#content(part, pointer)
    if (typeof content === 'string') return this.#text('user', content, messageId)
    // A streamed message has only text.
    const text = content.flatMap((item, index) => {
      if (item.type === 'text') return [item.text]
      this.#losses.add(joinPointer(pointer, 'content', index), 'AG-UI streams text only')
      return []
    })
    const reason = 'the borders between content items are not kept'
    this.#losses.add(joinPointer(pointer, 'content'), reason)
    this.#text('user', text.join('\n'), messageId)
  }

  /** Returns a prompt as the content of a message; text, images, audio, video and documents have a place. */
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

  #text(role: 'user' | 'assistant', delta: string, messageId: string, name?: string): void {
    if (role === 'assistant') this.#parent = messageId
    const named = name === undefined ? {} : { name }
    this.#emit({ type: 'TEXT_MESSAGE_START', messageId, role, ...named })
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
    // All calls of a response are in one message; without this id a client shows one message per call.
    const parentMessageId = (this.#parent ??= `${toolCallId}:calls`)
    this.#emit({ type: 'TOOL_CALL_START', toolCallId, toolCallName, parentMessageId })
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
    else if (part.status === 'validation_error')
      this.#losses.add(joinPointer(pointer, 'status'), 'AG-UI knows one kind of error')
    const isError = part.part_kind === 'retry-prompt' || part.status !== 'success'
    const metadata = isError ? { metadata: { threadprotocol: { status: 'error' } } } : {}
    if (typeof part.content !== 'string')
      this.#losses.add(joinPointer(pointer, 'content'), 'the result becomes JSON text')
    const content = typeof part.content === 'string' ? part.content : JSON.stringify(part.content)
    this.#emit({
      type: 'TOOL_CALL_RESULT',
      messageId,
      toolCallId: part.tool_call_id ?? '',
      content,
      role: 'tool',
      ...metadata,
    })
  }
}

/** The counters of a thread that AG-UI has, and their names there. */
export const USAGE: Readonly<
  Record<
    `${'input' | 'output' | 'total' | 'thinking' | 'cache_read' | 'cache_write'}_tokens`,
    Exclude<keyof AgUiUsage, 'provider' | 'model'>
  >
> = {
  input_tokens: 'inputTokens',
  output_tokens: 'outputTokens',
  total_tokens: 'totalTokens',
  thinking_tokens: 'reasoningTokens',
  cache_read_tokens: 'cachedInputTokens',
  cache_write_tokens: 'cacheWriteInputTokens',
}

function fileContent(item: MultiModalContent): AgUiContentPart | undefined {
  switch (item.kind) {
    case 'image-url':
    case 'audio-url':
    case 'video-url':
    case 'document-url': {
      const type = item.kind.slice(0, -'-url'.length) as 'image' | 'audio' | 'video' | 'document'
      const named = item.media_type == null ? {} : { mimeType: item.media_type }
      return { type, source: { type: 'url', value: item.url, ...named } }
    }
    case 'binary': {
      const kind = item.media_type.split('/')[0]
      const type = kind === 'image' || kind === 'audio' || kind === 'video' ? kind : 'document'
      return { type, source: { type: 'data', value: item.data, mimeType: item.media_type } }
    }
    default:
      return undefined
  }
}
