import {
  decodeBase64,
  isPlainObject,
  type JsonObject,
  type JsonValue,
  type MessageJSON,
  SkeinError,
} from '@skein/base'
import {
  rebuildRequests,
  type ModelLogDetail,
  type RuntimeEvent,
  type Store,
  type StoredEvent,
  type ThreadHead,
} from '@skein/runtime'
import { inputType } from './input-events.ts'
import type {
  RecordedAnswer,
  RecordedCall,
  RecordedHead,
  RecordedInput,
  ThreadRequest,
  RecordedThread,
  RecordedUsage,
} from './recorded-thread.ts'

/** The part of a store from which threads are read. */
export type RecordedSource = Pick<Store, 'head' | 'events' | 'blob'>

/** How many events one read returns at most. */
const PAGE = 1000

/** Reads a thread and its descendants from a store. Rejects with `THREAD_NOT_FOUND` if there is no such thread. */
export async function readRecording(
  store: RecordedSource,
  threadId: string,
): Promise<RecordedThread> {
  const head = await store.head(threadId)
  if (!head)
    throw new SkeinError(`There is no thread ${threadId} in this store.`, {
      code: 'THREAD_NOT_FOUND',
    })
  const events: StoredEvent[] = []
  for (;;) {
    const page = await store.events(threadId, { after: events.length, limit: PAGE })
    events.push(...page)
    if (page.length < PAGE) break
  }
  const blobs = new Map<string, Uint8Array>()
  for (const hash of hashesIn(events)) {
    const bytes = await store.blob(hash)
    if (bytes) blobs.set(hash, bytes)
  }
  const children: RecordedThread[] = []
  for (const reference of childrenIn(events)) {
    // A child may have been removed.
    if (await store.head(reference)) children.push(await readRecording(store, reference))
  }
  return recordedThread({ events, blobs, children, head: headOf(head) })
}

/** Reads what `threads.export` has written. An export has one thread and no descendants. */
export async function readExport(lines: string): Promise<RecordedThread> {
  const [first = '', ...rest] = lines.trimEnd().split('\n')
  const header = objectOf(first, 1)
  if (header['skein'] !== 'thread') throw invalid(1, 'it is not the header of an exported thread')
  const events: StoredEvent[] = []
  const blobs = new Map<string, Uint8Array>()
  for (const [index, line] of rest.entries()) {
    const value = objectOf(line, index + 2)
    const { blob, base64, seq, event } = value
    if (typeof blob === 'string' && typeof base64 === 'string')
      blobs.set(blob, decodeBase64(base64))
    else if (seq === events.length + 1 && isPlainObject(event))
      events.push({ seq, event: event as unknown as RuntimeEvent }) // the runtime wrote the export
    else throw invalid(index + 2, `it is not event ${events.length + 1}`)
  }
  const tags = Array.isArray(header['tags']) ? header['tags'].map(String) : []
  const title = typeof header['title'] === 'string' ? header['title'] : null
  const at = (event: StoredEvent | undefined): number => Date.parse(event?.event.at ?? '')
  const head: RecordedHead = {
    tenant: 'default',
    owner: null,
    clientId: null,
    title,
    tags,
    lifecycle: 'idle',
    createdAt: at(events[0]),
    updatedAt: at(events.at(-1)),
  }
  return recordedThread({ events, blobs, children: [], head })
}

interface Parts extends Pick<RecordedThread, 'events' | 'blobs' | 'children' | 'head'> {}

/** Makes a recorded thread of a log. */
export async function recordedThread({
  events,
  blobs,
  children,
  head,
}: Parts): Promise<RecordedThread> {
  const first = events[0]?.event
  if (first?.type !== 'thread_created')
    throw new SkeinError('The log does not begin with the event thread_created.', {
      code: 'INPUT_INVALID',
    })
  const logs = await rebuildRequests(events, async (hash) => blobs.get(hash))
  return {
    threadId: first.threadId,
    agent: first.agent,
    head,
    events,
    requests: requestsOf(events, logs, children),
    calls: callsOf(events),
    inputs: inputsOf(events),
    children,
    blobs,
  }
}

function requestsOf(
  events: readonly StoredEvent[],
  logs: readonly ModelLogDetail[],
  children: readonly RecordedThread[],
): readonly ThreadRequest[] {
  const places = new Map<string, number>()
  const answers = new Map<string, RuntimeEvent & { type: 'model_answered' }>()
  const messages = new Map<string, MessageJSON>()
  for (const { seq, event } of events) {
    if (event.type === 'model_requested') places.set(event.logId, seq)
    if (event.type === 'model_answered') answers.set(event.logId, event)
    if (event.type === 'message_added') messages.set(event.message.id, event.message)
    if (event.type === 'inference_recorded' && event.message)
      messages.set(event.message.id, event.message)
  }
  return logs.map((log) => ({
    seq: places.get(log.logId) ?? 0,
    logId: log.logId,
    at: log.at,
    side: log.side,
    prompt: log.prompt,
    stepId: log.stepId,
    attempt: log.attempt,
    toolCallId: log.toolCallId,
    content: {
      provider: log.provider,
      model: log.model,
      system: log.system,
      tools: log.tools,
      params: log.params,
      structure: log.structure,
      messages: log.messages as unknown as readonly MessageJSON[], // `rebuildRequests` converts messages
    },
    answer:
      answerOf(answers.get(log.logId), messages) ??
      ownAnswer(log, answers.get(log.logId), { events, children }),
  }))
}

/**
 * The answer to a request whose answer is no message of the thread: that of a prompt which is used as a tool, and of the
 * first instruction for a child.
 */
function ownAnswer(
  { logId, toolCallId }: ModelLogDetail,
  answered: (RuntimeEvent & { type: 'model_answered' }) | undefined,
  { events, children }: Pick<Parts, 'events' | 'children'>,
): RecordedAnswer | undefined {
  if (!answered || answered.error) return undefined
  const place = events.findIndex(
    ({ event }) => event.type === 'model_answered' && event.logId === logId,
  )
  const usage = recordedUsageOf(answered.usage, answered.costUsd)
  const spoken = (text: string): RecordedAnswer => ({
    ...saidAs(text, usage),
    durationMs: answered.durationMs,
  })
  if (toolCallId !== undefined) {
    const end = events.find(
      ({ event }, index) =>
        index > place && event.type === 'tool_execution_end' && event.toolCallId === toolCallId,
    )?.event
    const result = end?.type === 'tool_execution_end' ? end.result : undefined
    return spoken(typeof result === 'string' ? result : JSON.stringify(result ?? ''))
  }
  // The child is created in the commit that has the request.
  const made = [...events.slice(0, place).toReversed(), ...events.slice(place)].find(
    ({ event }) => event.type === 'subagent_created',
  )?.event
  const child =
    made?.type === 'subagent_created' &&
    children.find(({ threadId }) => threadId === made.reference)
  const first = child
    ? child.events.find(({ event }) => event.type === 'message_queued')?.event
    : undefined
  if (first?.type !== 'message_queued') return undefined
  const blocks = Array.isArray(first.message.content) ? first.message.content : []
  return spoken(
    blocks.map((block) => (isPlainObject(block) ? String(block['text'] ?? '') : '')).join(''),
  )
}

/** An answer that only says something. */
export function saidAs(
  text: string,
  usage: RecordedUsage,
): Extract<RecordedAnswer, { type: 'message' }> {
  const message = { type: 'assistant', content: [{ type: 'text', text }] } as unknown as MessageJSON // no id: it is not stored
  return { type: 'message', message, stopReason: 'end_turn', usage, durationMs: 0 }
}

function answerOf(
  answered: (RuntimeEvent & { type: 'model_answered' }) | undefined,
  messages: ReadonlyMap<string, MessageJSON>,
): RecordedAnswer | undefined {
  if (!answered) return undefined
  const { error, messageId, durationMs, firstTokenMs, finishReason, costUsd } = answered
  const usage = recordedUsageOf(answered.usage, costUsd)
  if (error) return { type: 'failure', ...error, usage: answered.usage && usage, durationMs }
  const message = messages.get(messageId ?? '')
  if (!message) return undefined
  const stopReason = (finishReason ?? 'end_turn') as Extract<
    RecordedAnswer,
    { type: 'message' }
  >['stopReason']
  return { type: 'message', message, stopReason, usage, durationMs, firstTokenMs }
}

/** Converts a usage of the log. */
export function recordedUsageOf(
  usage: JsonObject | undefined,
  costUsd: number | undefined,
): RecordedUsage {
  const count = (name: string): number => Number(usage?.[name] ?? 0)
  const written = count('cache_write_tokens')
  return {
    inputTokens: count('input_tokens'),
    outputTokens: count('output_tokens'),
    cachedTokens: count('cache_read_tokens'),
    ...(written > 0 && { cacheWriteTokens: written }),
    ...(usage?.['thinking_tokens'] !== undefined && { reasoningTokens: count('thinking_tokens') }),
    costUsd: costUsd ?? null,
  }
}

function callsOf(events: readonly StoredEvent[]): readonly RecordedCall[] {
  const calls = new Map<string, { -readonly [Name in keyof RecordedCall]: RecordedCall[Name] }>()
  const interrupts = new Map<string, string>()
  const begin = (seq: number, side: 'a' | 'b', message: MessageJSON): void => {
    for (const { toolCallId, toolName, arguments: raw } of madeBy(message))
      if (!calls.has(toolCallId)) calls.set(toolCallId, { seq, toolCallId, toolName, side, raw })
  }
  for (const { seq, event } of events) {
    switch (event.type) {
      case 'message_added':
        begin(seq, event.side, event.message)
        break
      case 'message_updated':
        begin(seq, 'a', event.message)
        break
      case 'tool_execution_start': {
        const call = calls.get(event.toolCallId)
        if (!call) break
        call.parsed = event.arguments as JsonValue // the log is JSON
        call.startedAt = event.at
        break
      }
      case 'tool_execution_end': {
        const call = calls.get(event.toolCallId)
        if (!call) break
        call.outcome = event.outcome
        call.result = event.result as JsonValue // the log is JSON
        call.endedAt = event.at
        break
      }
      case 'interrupt_opened': {
        const { id, toolCallId, kind } = event.interrupt
        const call = calls.get(toolCallId)
        if (!call || kind !== 'approval') break
        interrupts.set(id, toolCallId)
        call.approval = { interruptId: id, type: 'waiting' }
        if (event.parsed) call.parsed = event.parsed.arguments
        break
      }
      case 'interrupt_answered': {
        const call = calls.get(interrupts.get(event.interruptId) ?? '')
        if (!call) break
        const type = event.answer.type === 'approve' ? 'approved' : 'denied'
        call.approval = { interruptId: event.interruptId, type, by: event.answeredBy }
        break
      }
      case 'subagent_created': {
        const call = calls.get(event.toolCallId ?? '')
        if (call) call.childThreadId = event.reference
        break
      }
      default:
    }
  }
  return [...calls.values()]
}

interface MadeCall {
  readonly toolCallId: string
  readonly toolName: string
  readonly arguments: JsonObject
}

/** The calls that an assistant message makes. */
export function madeBy(message: MessageJSON): readonly MadeCall[] {
  const { toolCalls } = message as { readonly toolCalls?: readonly MadeCall[] }
  return toolCalls ?? []
}

function inputsOf(events: readonly StoredEvent[]): readonly RecordedInput[] {
  return events.flatMap(({ seq, event }) => {
    const type = inputType(event)
    return type === undefined ? [] : [{ seq, at: event.at, type }]
  })
}

function childrenIn(events: readonly StoredEvent[]): readonly string[] {
  return events.flatMap(({ event }) => (event.type === 'subagent_created' ? [event.reference] : []))
}

/** The hashes of the contents that a log names. */
function hashesIn(events: readonly StoredEvent[]): ReadonlySet<string> {
  const hashes = new Set<string>()
  for (const { event } of events) {
    if (event.type === 'model_requested') hashes.add(event.frame)
    if (event.type === 'file_written' && event.hash !== undefined) hashes.add(event.hash)
  }
  return hashes
}

function headOf({
  tenant,
  owner,
  title,
  tags,
  clientId,
  createdAt,
  updatedAt,
  lifecycle,
}: ThreadHead): RecordedHead {
  return { tenant, owner, title, tags, clientId, createdAt, updatedAt, lifecycle }
}

function objectOf(line: string, number: number): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(line)
  } catch (cause) {
    throw invalid(number, 'it is not JSON', cause)
  }
  if (!isPlainObject(value)) throw invalid(number, 'it is not an object')
  return value
}

function invalid(line: number, problem: string, cause?: unknown): SkeinError {
  return new SkeinError(`Line ${line} of the export cannot be read: ${problem}.`, {
    code: 'INPUT_INVALID',
    cause,
  })
}
