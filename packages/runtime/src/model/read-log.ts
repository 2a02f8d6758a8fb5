import { notFound, keysOf, type RequestFrame, storedIn } from './log.ts'
import type { ModelLog, ModelLogDetail } from '../contract/model-log.ts'
import { foldKernel, KernelFold } from '../state/fold.ts'
import type { ModelAnswered, ModelRequested, StoredEvent } from '../contract/event.ts'
import { type Message, messageToJSON } from '@skein/ai'
import type { JsonObject } from '@skein/base'

/** Returns every model request of a log with its answer, in order. */
export function modelLogs(events: readonly StoredEvent[]): ModelLog[] {
  const answers = answersOf(events)
  return events.flatMap(({ event }) =>
    event.type === 'model_requested' ? [toLog(event, answers.get(event.logId))] : [],
  )
}
/** Rebuilds a request as it was sent. Throws `LOG_NOT_FOUND` when a part of it is missing. */
export async function rebuildRequest(
  events: readonly StoredEvent[],
  logId: string,
  blob: (hash: string) => Promise<Uint8Array | undefined>,
): Promise<ModelLogDetail> {
  const place = events.findIndex(({ event }) => isRequest(event) && event.logId === logId)
  const request = events[place]?.event
  if (request?.type !== 'model_requested') throw notFound(logId, 'is not in this thread')
  const bytes = await blob(request.frame)
  if (!bytes) throw notFound(logId, 'has lost its frame')
  // The cast is safe, because `frameOf` wrote the frame.
  const frame = JSON.parse(new TextDecoder().decode(bytes)) as ReadFrame
  const answer = answersOf(events).get(logId)
  return {
    ...toLog(request, answer),
    ...frame,
    messages: messagesOf(request, events.slice(0, place)),
    messageId: answer?.messageId,
  }
}

/**
 * Rebuilds all requests of a log as they were sent, in order. The log is read once, which for a long log is much faster
 * than `rebuildRequest` for each request. A request of which a part is missing is left out.
 */
export async function rebuildRequests(
  events: readonly StoredEvent[],
  blob: (hash: string) => Promise<Uint8Array | undefined>,
): Promise<ModelLogDetail[]> {
  const answers = answersOf(events)
  const fold = new KernelFold()
  const stored = (key: string): Message | undefined => storedIn(fold.state)(key)
  const written = new Map<string, JsonObject>()
  const converted = new WeakMap<Message, JsonObject>()
  const keysByLog = new Map<string, readonly string[]>()
  const frames = new Map<string, ReadFrame>()
  const requests: ModelLogDetail[] = []
  const json = (message: Message): JsonObject => {
    const before = converted.get(message)
    if (before) return before
    const made = messageToJSON(message) as unknown as JsonObject // `MessageJSON` is JSON
    converted.set(message, made)
    return made
  }
  for (const one of events) {
    fold.push(one)
    const { event } = one
    if (!isRequest(event)) continue
    for (const add of event.adds)
      if (typeof add !== 'string') written.set(String(add['id']), add['message'] as JsonObject)
    const added = event.adds.map((add) => (typeof add === 'string' ? add : String(add['id'])))
    const { previous } = event
    const keys = [
      ...(keysByLog.get(previous?.logId ?? '') ?? []).slice(0, previous?.keeps),
      ...added,
    ]
    keysByLog.set(event.logId, keys)
    if (!frames.has(event.frame)) {
      const bytes = await blob(event.frame)
      if (!bytes) continue
      frames.set(event.frame, JSON.parse(new TextDecoder().decode(bytes)) as ReadFrame)
    }
    if (keys.some((key) => !written.has(key) && !stored(key))) continue
    const answer = answers.get(event.logId)
    requests.push({
      ...toLog(event, answer),
      ...frames.get(event.frame)!,
      messages: keys.map((key) => written.get(key) ?? json(stored(key)!)),
      messageId: answer?.messageId,
    })
  }
  return requests
}

/** A frame as `frameOf` wrote it. */
type ReadFrame = { readonly [Field in keyof RequestFrame]: ModelLogDetail[Field] }

function messagesOf(requested: ModelRequested, before: readonly StoredEvent[]): JsonObject[] {
  const requests = before.map(({ event }) => event).filter(isRequest)
  const texts = new Map<string, JsonObject>()
  for (const { adds } of [...requests, requested]) {
    for (const add of adds) {
      if (typeof add !== 'string') texts.set(String(add['id']), add['message'] as JsonObject)
    }
  }
  const find = storedIn(foldKernel(before))
  return keysOf(requested, requests).map((key) => {
    const message = texts.get(key)
    if (message) return message
    const entry = find(key)
    if (!entry) throw notFound(requested.logId, `has lost the message ${key}`)
    return messageToJSON(entry) as unknown as JsonObject // `MessageJSON` is JSON
  })
}
function isRequest(event: StoredEvent['event']): event is ModelRequested {
  return event.type === 'model_requested'
}
function answersOf(events: readonly StoredEvent[]): Map<string, ModelAnswered> {
  const answers = new Map<string, ModelAnswered>()
  for (const { event } of events) {
    if (event.type === 'model_answered') answers.set(event.logId, event)
  }
  return answers
}
function toLog(requested: ModelRequested, answer: ModelAnswered | undefined): ModelLog {
  const { logId, stepId, at, side, prompt, toolCallId, provider, model, attempt } = requested
  const of = toolCallId === undefined ? {} : { toolCallId }
  const log = { logId, stepId, at, side, prompt, ...of, provider, model, attempt }
  if (!answer) return log
  const { type: _type, at: _at, logId: _id, messageId: _message, ...told } = answer
  // An answer has no cost if the price of its model is unknown.
  const { costUsd = null } = told
  return { ...log, ...told, ...(told.usage !== undefined && { costUsd }) }
}
