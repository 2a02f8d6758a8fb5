import type { Converted } from '../../issue.ts'
import { isObject, sha256Hex } from '@skein/base'
import type { AgentTurn, Thread, Usage } from '../../document/thread.ts'
import type { MessagePart, UserContent } from '../../document/part.ts'
import { instantOf } from '../../document/timestamp.ts'
import { ThreadBuilder, type ImportOptions } from '../bridge/build.ts'
import { Losses } from '../bridge/walk.ts'
import {
  type AgUiContentPart,
  type AgUiEvent,
  type AgUiInput,
  type AgUiInterrupt,
  type AgUiKnownEvent,
  type AgUiMessage,
  type AgUiOutcome,
  type AgUiUsage,
  USAGE,
} from './types.ts'

/**
 * Converts AG-UI events to a thread: each run becomes one turn, and the new user messages of its input become
 * turns before it. Events that are not part of the conversation are kept whole, as system events; fields that
 * a thread has no place for are listed in `lost`.
 */
export function fromAgUiEvents(
  events: Iterable<AgUiEvent>,
  options?: ImportOptions,
): Converted<Thread> {
  const reader = new EventReader(options)
  for (const event of events) reader.read(event as AgUiKnownEvent)
  return reader.end()
}

const DELTA = ['messageId', 'delta']

/** The fields of each event that are read. Other fields of these events are reported as lost. */
const READ: Readonly<Record<AgUiKnownEvent['type'], readonly string[]>> = {
  RUN_STARTED: ['threadId', 'runId', 'protocolVersion', 'input'],
  RUN_FINISHED: ['threadId', 'runId', 'outcome', 'usage'],
  RUN_ERROR: ['message', 'code', 'usage'],
  MESSAGES_SNAPSHOT: ['messages'],
  STEP_STARTED: ['stepName'],
  STEP_FINISHED: ['stepName'],
  TEXT_MESSAGE_START: ['messageId', 'role', 'name'],
  TEXT_MESSAGE_CONTENT: DELTA,
  TEXT_MESSAGE_END: ['messageId'],
  TEXT_MESSAGE_CHUNK: [...DELTA, 'role', 'name'],
  REASONING_START: ['messageId'],
  REASONING_END: ['messageId'],
  REASONING_MESSAGE_START: ['messageId', 'role'],
  REASONING_MESSAGE_CONTENT: DELTA,
  REASONING_MESSAGE_END: ['messageId'],
  REASONING_MESSAGE_CHUNK: DELTA,
  REASONING_ENCRYPTED_VALUE: ['subtype', 'entityId', 'encryptedValue'],
  TOOL_CALL_START: ['toolCallId', 'toolCallName', 'parentMessageId'],
  TOOL_CALL_ARGS: ['toolCallId', 'delta'],
  TOOL_CALL_END: ['toolCallId'],
  TOOL_CALL_CHUNK: ['toolCallId', 'toolCallName', 'parentMessageId', 'delta'],
  TOOL_CALL_RESULT: ['messageId', 'toolCallId', 'content', 'role', 'metadata'],
  CUSTOM: ['name', 'value'],
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
  #threadId: string | undefined
  #chunk: string | undefined
  #count = 0
  /** Messages that are already in the thread. */
  readonly #seen = new Set<string>()

  constructor(options: ImportOptions | undefined) {
    this.#builder = new ThreadBuilder(options)
  }

  read(event: AgUiKnownEvent): void {
    const { timestamp } = event
    if (typeof timestamp === 'number') this.#at = new Date(timestamp).toISOString()
    this.#count++
    if (Object.hasOwn(READ, event.type)) this.#rest(event, '', READ[event.type])
    switch (event.type) {
      case 'RUN_STARTED':
        this.#endRun()
        this.#thread(event.threadId)
        if (event.input) this.#input(event.input)
        this.#runId = event.runId
        this.#startedAt = this.#at
        return
      case 'RUN_FINISHED':
        return this.#finishRun(event.outcome, this.#usage(event.usage))
      case 'RUN_ERROR': {
        this.#flush()
        const { message, code } = event
        const problem = code === undefined ? { message } : { message, code }
        this.#builder.event('stream.error', problem, this.#at)
        return this.#endRun({ ...interrupted('error', this.#at), ...this.#usage(event.usage) })
      }
      case 'MESSAGES_SNAPSHOT':
        return this.#snapshot(event.messages)
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
      case 'TEXT_MESSAGE_CHUNK': {
        const { messageId, role = 'assistant', name, delta } = event
        return this.#chunks(messageId, delta, (id) => this.#startText(id, role, name))
      }
      case 'REASONING_MESSAGE_CHUNK': {
        const key = event.messageId === undefined ? undefined : `r:${event.messageId}`
        return this.#chunks(key, event.delta, (id) =>
          this.#add(id, { part_kind: 'thinking', content: '' }),
        )
      }
      case 'TOOL_CALL_CHUNK': {
        const { toolCallId, toolCallName = '', delta } = event
        const key = toolCallId === undefined ? undefined : `c:${toolCallId}`
        return this.#chunks(key, delta, (id) => this.#startCall(id.slice(2), toolCallName))
      }
      case 'TOOL_CALL_RESULT':
        return this.#result(event)
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

  /** The first thread id becomes the id of the thread, unless the options name one. */
  #thread(threadId: string): void {
    if (this.#threadId === undefined) this.#builder.threadId = this.#threadId = threadId
    else if (this.#threadId !== threadId) this.#lost(`a run of another thread, ${threadId}`)
  }

  #input(input: AgUiInput): void {
    this.#rest(input, '/input', ['threadId', 'runId', 'protocolVersion', 'messages'])
    for (const [index, message] of input.messages.entries()) {
      if (this.#seen.has(message.id)) continue
      const at = `/input/messages/${index}`
      if (message.role === 'user') this.#asked(message, at)
      // Other messages are answers of earlier runs, which are in the thread if those runs were read.
      else if (!this.#isKnown(message))
        this.#lost(`a message of the role ${message.role} whose run was not read`, at)
    }
  }

  #asked(message: AgUiMessage, pointer: string): void {
    const { id, metadata, content = '' } = message
    const { submitted_at, ...others } = ownFields(metadata)
    this.#rest(message, pointer, ['id', 'role', 'content', 'metadata'])
    const { threadprotocol: _, ...foreign } = metadata ?? {}
    this.#rest(foreign, `${pointer}/metadata`, [])
    this.#rest(others, `${pointer}/metadata/threadprotocol`, [])
    const part: MessagePart = { part_kind: 'user-prompt', content: promptOf(content) }
    const isTime = typeof submitted_at === 'string' && !Number.isNaN(instantOf(submitted_at))
    this.#seen.add(id)
    this.#builder.user([part], isTime ? submitted_at : this.#at, { turn_id: id })
  }

  #isKnown({ id, role, toolCallId, toolCalls = [] }: AgUiMessage): boolean {
    if (role === 'tool') return toolCallId !== undefined && this.#names.has(toolCallId)
    if (toolCalls.length > 0 && toolCalls.every((call) => this.#names.has(call.id))) return true
    return this.#roles.has(id) || this.#drafts.has(`r:${id}`)
  }

  /** A snapshot repeats messages. Those that were not streamed are reported. */
  #snapshot(messages: readonly AgUiMessage[]): void {
    for (const [index, message] of messages.entries()) {
      if (this.#seen.has(message.id) || this.#isKnown(message)) continue
      const at = `/messages/${index}`
      if (message.role === 'user' && this.#runId === undefined) this.#asked(message, at)
      else this.#lost(`a message of the role ${message.role} that was not streamed`, at)
    }
  }

  #usage(usage: readonly AgUiUsage[] | undefined): Partial<AgentTurn> {
    if (!usage || usage.length === 0) return {}
    const total: Record<string, number> = {}
    for (const [index, entry] of usage.entries()) {
      this.#rest(entry, `/usage/${index}`, Object.values(USAGE))
      for (const [name, field] of Object.entries(USAGE)) {
        const count = entry[field]
        if (typeof count === 'number') total[name] = (total[name] ?? 0) + count
      }
    }
    return { total_usage: total satisfies Usage }
  }

  #rest(value: object, tail: string, read: readonly string[]): void {
    const known = ['type', 'timestamp', ...read]
    this.#losses.rest(value, `/${this.#count - 1}${tail}`, known, 'a thread has no field for it')
  }

  #lost(reason: string, tail = ''): void {
    this.#losses.add(`/${this.#count - 1}${tail}`, reason)
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
      this.#lost(`a ${role} message is configuration and is not stored in a thread`)
    else if (this.#runId === undefined) this.#builder.user([part], this.#at, { turn_id: id })
    else this.#builder.request([part], this.#at)
  }

  /** Reads a chunk. The first chunk of a key starts a part; a chunk without a key continues the latest part. */
  #chunks(key = this.#chunk, delta: string | undefined, start: (key: string) => void): void {
    if (key === undefined) return this.#lost('a chunk that names neither a message nor a call')
    this.#chunk = key
    if (!this.#drafts.has(key)) start(key)
    if (delta !== undefined) this.#append(key, delta)
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

  #result({
    toolCallId: id,
    content,
    metadata = {},
  }: Extract<AgUiKnownEvent, { type: 'TOOL_CALL_RESULT' }>): void {
    const tool_name = this.#names.get(id) ?? ''
    const { threadprotocol: _, ...foreign } = metadata
    this.#rest(foreign, '/metadata', [])
    const status = ownFields(metadata)['status'] === 'error' ? 'error' : 'success'
    if (this.#results.length === 0) this.#resultsAt = this.#at
    this.#results.push({ part_kind: 'tool-return', tool_name, tool_call_id: id, status, content })
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
    if (!draft) return this.#lost('a delta for something that was never started')
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

  #finishRun(outcome: AgUiOutcome | undefined, usage: Partial<AgentTurn>): void {
    if (outcome?.type === 'interrupt') this.#interrupts(outcome.interrupts)
    const how = outcome?.type === 'cancelled' ? interrupted('user_cancelled', this.#at) : {}
    this.#endRun({ ...how, ...usage })
  }

  /** Stores the interrupts that a run waits for, except those that an open call already expresses. */
  #interrupts(interrupts: readonly AgUiInterrupt[]): void {
    this.#flush()
    for (const interrupt of interrupts) {
      const { id, reason, toolCallId, ...more } = interrupt
      const isOpenCall = id === toolCallId && reason === 'tool_call' && this.#names.has(id)
      if (!isOpenCall || Object.keys(more).length > 0)
        this.#builder.event('ag-ui.interrupt', interrupt, this.#at)
    }
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

/** Our own fields in the metadata of a message or event. */
function ownFields(metadata: unknown): Readonly<Record<string, unknown>> {
  const own = isObject(metadata) ? metadata['threadprotocol'] : undefined
  return isObject(own) ? own : {}
}

function promptOf(content: string | readonly AgUiContentPart[]): string | readonly UserContent[] {
  if (typeof content === 'string') return content
  return content.map((part): UserContent => {
    if (part.type === 'text') return part.text
    const { source, type } = part
    const identifier = sha256Hex(source.value).slice(0, 6)
    if (source.type === 'data')
      return { kind: 'binary', data: source.value, media_type: source.mimeType, identifier }
    const mediaType = source.mimeType === undefined ? {} : { media_type: source.mimeType }
    return { kind: `${type}-url`, url: source.value, identifier, ...mediaType }
  })
}
