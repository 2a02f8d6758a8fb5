import { RuntimeError } from '../contract/error.ts'
import { canonicalJson, type JsonObject, type JsonSchema, sha256Hex } from '@skein/base'
import {
  type Message,
  messageToJSON,
  type Params,
  type TokenUsage,
  type Tool,
  type Turn,
  UPPError,
} from '@skein/ai'
import type { ResolvedModel, ResolvedSide } from '../definitions/resolved.ts'
import type { ModelAnswered, ModelRequested, RuntimeEvent } from '../contract/event.ts'
import type { Blob } from '../store/commit.ts'
import type { DrainContext } from '../context/drain-context.ts'
import { costOf, spentOn, toThreadUsage } from '../contract/usage.ts'
import type { KernelState, RequestLog } from '../state/kernel-state.ts'
import type { Side } from '../contract/thread-state.ts'
import { sameStart } from './view.ts'

/** A request as the log stores it: parts that are the same as in the previous request are not written again. */
export interface LoggedRequest {
  readonly requested: ModelRequested
  readonly frame: Blob
  readonly startedAt: number
}

interface RequestFacts {
  readonly side: ResolvedSide
  readonly model: ResolvedModel
  readonly system: string | undefined
  readonly tools: readonly Tool[]
  readonly params: Params
  readonly messages: readonly Message[]
  readonly structure: JsonSchema | undefined
  /** The call that makes the request; set only if the request is that of a prompt used as a tool. */
  readonly toolCallId?: string
}

/** Builds the log record of a request, which is committed together with its answer. */
export function logRequest(context: DrainContext, facts: RequestFacts): LoggedRequest {
  const { environment, state } = context
  const { side, model, system, params, messages, structure, toolCallId } = facts
  const previous = toolCallId === undefined ? state.lastLog[side.side] : undefined
  const turn = state.session?.turn
  const tools = facts.tools.map(({ name, description, parameters }) => ({
    name,
    description,
    parameters,
  }))
  const frame = frameOf({
    system: system ?? null,
    tools,
    params: params as JsonObject,
    structure: structure as JsonObject | undefined,
  })
  const logId = environment.ids()
  const repeats = toolCallId === undefined ? repeated(state, side.side, { logId, messages }) : 0
  return {
    frame,
    startedAt: environment.clock.now(),
    requested: {
      type: 'model_requested',
      at: context.at(),
      logId,
      stepId: turn?.step?.id ?? '',
      turnId: turn?.id ?? '',
      attempt: turn?.step?.attempt ?? 1,
      side: side.side,
      prompt: side.prompt.name,
      toolCallId,
      provider: model.model.provider.name,
      model: model.model.modelId,
      frame: frame.hash,
      ...deltaOf(previous, messages, storedIn(state), repeats),
    },
  }
}

interface LastRequest {
  readonly logId: string
  readonly messages: readonly Message[]
  readonly editSeq: number
}

const lastRequests = new WeakMap<KernelState, { a?: LastRequest; b?: LastRequest }>()

/**
 * Returns how many messages at its start a request shares with the last logged request of the same side of
 * the conversation, and remembers the request. Messages are compared by identity, which is fast.
 */
function repeated(
  state: KernelState,
  side: Side,
  { logId, messages }: Pick<LastRequest, 'logId' | 'messages'>,
): number {
  const { editSeq } = state
  const requests = lastRequests.get(state) ?? {}
  const last = requests[side]
  lastRequests.set(state, { ...requests, [side]: { logId, messages, editSeq } })
  // After an edit, the log may refer to the same message by another key, so nothing counts as shared.
  if (!last || last.logId !== state.lastLog[side]?.logId || last.editSeq !== editSeq) return 0
  return sameStart(last.messages, messages)
}

/** The records of one request and its answer. */
export interface LogWrites {
  readonly events: readonly RuntimeEvent[]
  readonly blobs: readonly Blob[]
}

/** Returns the events that log a request and its answer. */
export function logAnswer(
  context: DrainContext,
  log: LoggedRequest,
  {
    turn,
    ...answer
  }: { readonly turn: Turn } & Pick<ModelAnswered, 'messageId' | 'costUsd' | 'firstTokenMs'>,
): LogWrites {
  const usage = { ...toThreadUsage(turn.usage) } as JsonObject
  return logWrites(context, log, { ...answer, finishReason: turn.stopReason, usage })
}

/** Returns the events that log a request and its failure. */
export function logFailure(
  context: DrainContext,
  { log, model }: { readonly log: LoggedRequest; readonly model: ResolvedModel },
  error: unknown,
): LogWrites {
  const { code, message, hint } =
    error instanceof UPPError ? error : { code: 'ERROR', message: String(error), hint: undefined }
  const usage = error instanceof UPPError ? error.turn?.usage : undefined
  const costUsd = usage && costOf(model, usage)
  return logWrites(context, log, {
    error: { code, message, ...(hint !== undefined && { hint }) },
    usage: usage && ({ ...toThreadUsage(usage) } as JsonObject),
    costUsd,
  })
}

/** Like `logFailure`, but also records the tokens used, because no stored message contains them. */
export function logLoss(
  context: DrainContext,
  request: { readonly log: LoggedRequest; readonly model: ResolvedModel },
  error: unknown,
): LogWrites {
  const usage = error instanceof UPPError ? error.turn?.usage : undefined
  return withLoss(context, request, logFailure(context, request, error), usage)
}

/** Adds the event that records the tokens used by a request whose answer is not stored as a message. */
export function withLoss(
  context: DrainContext,
  { log, model }: { readonly log: LoggedRequest; readonly model: ResolvedModel },
  writes: LogWrites,
  usage: TokenUsage | undefined,
): LogWrites {
  if (!usage || usage.totalTokens === 0) return writes
  const { logId } = log.requested
  const usageEvents = spentOn(model, usage, { at: context.at(), logId })
  return { ...writes, events: [...writes.events, usageEvents] }
}

/** Returns the events that log a request, and its answer or failure. */
export function logWrites(
  context: DrainContext,
  { requested, frame, startedAt }: LoggedRequest,
  answer: Partial<ModelAnswered>,
): LogWrites {
  const durationMs = context.environment.clock.now() - startedAt
  const { logId, toolCallId } = requested
  const head = { type: 'model_answered', at: context.at(), logId, toolCallId, durationMs } as const
  return { events: [requested, { ...head, ...answer }], blobs: [frame] }
}

/** The system text, tools and parameters of a request, which are mostly the same from step to step. */
export interface RequestFrame {
  readonly system: string | null
  readonly tools: readonly Readonly<Record<string, unknown>>[]
  readonly params: JsonObject
  readonly structure?: JsonObject
}

/** Blobs of the frames (system text, tools, parameters of a request) that were converted last, by their JSON. */
const frames = new Map<string, Blob>()
const MAX_FRAMES = 64

/** Converts a frame (system text, tools, parameters) to a blob. Equal frames give the same blob. */
export function frameOf(frame: RequestFrame): Blob {
  const { system, tools, params, structure } = frame
  const value = { system, tools, params, structure }
  const json = JSON.stringify(value)
  const known = frames.get(json)
  if (known) return known
  let text: string
  try {
    text = canonicalJson(value)
  } catch {
    // Canonical JSON refuses some values, e.g. NaN. Plain JSON changes them: an inexact log is better than none.
    text = json
  }
  const bytes = new TextEncoder().encode(text)
  const blob = { hash: sha256Hex(bytes), bytes }
  if (frames.size >= MAX_FRAMES) frames.clear()
  frames.set(json, blob)
  return blob
}

const RESULTS = '.results'

/**
 * Returns a function that finds a stored message, or the message with the results of its calls, by id; for `deltaOf`.
 */
export function storedIn({
  entries,
  places,
}: Pick<KernelState, 'entries' | 'places'>): (id: string) => Message | undefined {
  return (id) =>
    entries[places.get(id) ?? -1]?.message ??
    (id.endsWith(RESULTS)
      ? entries[places.get(id.slice(0, -RESULTS.length)) ?? -1]?.results
      : undefined)
}

/**
 * Returns the messages of a request as a difference to the previous request. A message that is sent
 * exactly as stored is written as its id. Any other message is written out the first time, and
 * afterwards named by a key with its hash.
 */
export function deltaOf(
  previous: RequestLog | undefined,
  messages: readonly Message[],
  stored: (id: string) => Message | undefined,
  /** How many messages at the start are known to be the same as in the previous request. */
  repeats = 0,
): Pick<ModelRequested, 'previous' | 'adds'> {
  const before = previous?.messageIds ?? []
  const from = Math.min(repeats, before.length)
  const keys = messages
    .slice(from)
    .map((message) =>
      stored(message.id) === message ? message.id : `${message.id}#${digestOf(message)}`,
    )
  let keeps = from
  while (keeps < messages.length && keys[keeps - from] === before[keeps]) keeps++
  let names: Set<string> | undefined
  const adds = messages.slice(keeps).map((message, index) => {
    const key = keys[keeps - from + index]!
    if (key === message.id) return key
    names ??= new Set(before)
    if (names.has(key)) return key
    names.add(key)
    // The key is stored as `id`, so that code that reads the log finds the key without decoding the message.
    return { id: key, message: messageToJSON(message) as unknown as JsonObject } // `MessageJSON` is JSON
  })
  return previous && keeps > 0 ? { previous: { logId: previous.logId, keeps }, adds } : { adds }
}

const digests = new WeakMap<Message, string>()

function digestOf(message: Message): string {
  const known = digests.get(message)
  if (known !== undefined) return known
  const digest = sha256Hex(JSON.stringify(messageToJSON(message))).slice(0, 24)
  digests.set(message, digest)
  return digest
}

/** Returns the keys of all messages of a request, including those in the earlier requests to which it refers. */
export function keysOf(requested: ModelRequested, before: readonly ModelRequested[]): string[] {
  const byId = new Map(before.map((request) => [request.logId, request]))
  const parts: (readonly string[])[] = []
  let request = requested
  let minimum = Infinity
  for (;;) {
    const { previous, adds } = request
    const keeps = previous?.keeps ?? 0
    const keys = adds.map((add) => (typeof add === 'string' ? add : String(add['id'])))
    if (minimum > keeps) parts.push(keys.slice(0, minimum - keeps))
    minimum = Math.min(minimum, keeps)
    if (!previous || minimum === 0) return parts.toReversed().flat()
    const next = byId.get(previous.logId)
    if (!next) throw notFound(requested.logId, `rests on ${previous.logId}, which is gone`)
    request = next
  }
}

export function notFound(logId: string, problem: string): RuntimeError {
  return new RuntimeError(`The model request ${logId} ${problem}.`, { code: 'LOG_NOT_FOUND' })
}
