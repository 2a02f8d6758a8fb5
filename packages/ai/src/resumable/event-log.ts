import { messageOf, type Clock, isPlainObject, SkeinError, systemClock } from '@skein/base'
import { fromBytesJson, toBytesJson } from '../contract/bytes-json.ts'
import { ErrorCode, isUPPError, type Modality, UPPError } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'

/**
 * One entry of a stream's log. Numbers start at 1 without gaps; the last entry is an `end` or a `failure`.
 */
export interface LogEntry {
  readonly number: number
  readonly kind: 'event' | 'end' | 'failure'
  /** JSON text: the event with its bytes as base64, the failure, or `null` for `end`. */
  readonly data: string
}

/** A part of the log of one stream. */
export interface LogPage {
  readonly entries: readonly LogEntry[]
  /** Number of the newest entry; 0 for an empty log. */
  readonly last: number
  /** True when the `end` or `failure` entry has been written. */
  readonly isOver: boolean
}

/** Stores the logs of streams. If several processes share a store, each of them can serve readers. */
export interface EventLog {
  /** Creates an empty log. Throws STREAM_EXISTS, or STREAM_LIMIT when there are too many streams. */
  create(id: string): void | Promise<void>
  /** Appends an entry. A log that has ended must be kept for `ttlMs` and then deleted. */
  append(id: string, entry: LogEntry, ttlMs: number): void | Promise<void>
  /** Returns the entries after number `after`; undefined for an unknown or deleted log. */
  read(id: string, after: number): LogPage | undefined | Promise<LogPage | undefined>
  /** Settles when there may be entries after number `after`, or when the signal aborts. Never rejects. */
  changed(id: string, after: number, signal: AbortSignal): Promise<void>
}

/** Limits of `memoryEvents`. */
export interface MemoryEventsOptions {
  /** The largest number of stored streams, running or ended. Default 10,000. */
  readonly maxStreams?: number
  readonly clock?: Clock
}

interface Log {
  readonly entries: LogEntry[]
  readonly waiting: Set<() => void>
  expiresAt: number
}

/** Stores streams in the memory of this process. `size` is the current number of stored streams. */
export function memoryEvents({
  maxStreams = 10_000,
  clock = systemClock,
}: MemoryEventsOptions = {}): EventLog & { readonly size: number } {
  const logs = new Map<string, Log>()

  function forgetOld(): void {
    const now = clock.now()
    for (const [id, { expiresAt }] of logs) if (expiresAt <= now) logs.delete(id)
  }

  return {
    get size() {
      forgetOld()
      return logs.size
    },
    create(id) {
      forgetOld()
      if (logs.has(id))
        throw new StreamError(`There is a stream "${id}" already.`, {
          code: StreamErrorCode.Exists,
          hint: 'Give every stream an id of its own.',
        })
      if (logs.size >= maxStreams) throw streamLimit(maxStreams)
      logs.set(id, { entries: [], waiting: new Set(), expiresAt: Infinity })
    },
    append(id, entry, ttlMs) {
      const log = logs.get(id)
      if (!log) return
      log.entries.push(entry)
      if (entry.kind !== 'event') log.expiresAt = clock.now() + ttlMs
      for (const wake of log.waiting) wake()
    },
    read(id, after) {
      const log = logs.get(id)
      if (!log) return undefined
      if (log.expiresAt <= clock.now()) {
        logs.delete(id)
        return undefined
      }
      const { entries } = log
      const newest = entries.at(-1)
      return {
        entries: entries.slice(after),
        last: entries.length,
        isOver: newest !== undefined && newest.kind !== 'event',
      }
    },
    changed(id, after, signal) {
      const log = logs.get(id)
      if (!log || log.entries.length > after || signal.aborted) return Promise.resolve()
      return new Promise((resolve) => {
        const wake = (): void => {
          log.waiting.delete(wake)
          signal.removeEventListener('abort', wake)
          resolve()
        }
        log.waiting.add(wake)
        signal.addEventListener('abort', wake)
      })
    },
  }
}

/** Converts an event to text, bytes included. A tool result that is not JSON is replaced by null. */
export function eventToText(event: StreamEvent): string {
  try {
    return JSON.stringify(toBytesJson(event))
  } catch {
    // The result of a tool contains a BigInt or a cycle. The model sees
    // it as text; readers of events get null.
    return JSON.stringify({ ...event, delta: { ...event.delta, result: null } })
  }
}

/** Reads an event written by `eventToText`. */
export function eventFromText(text: string): StreamEvent {
  return fromBytesJson(JSON.parse(text)) as StreamEvent // written by `eventToText`
}

const upp = ['provider', 'modality', 'statusCode', 'vendorCode', 'vendorType', 'requestId'] as const

/**
 * Converts a failure for a remote reader: code, message and other safe fields, but no stack, cause or body.
 */
export function failureToText(error: unknown): string {
  const json = SkeinError.is(error)
    ? error.toJSON()
    : { code: ErrorCode.ProviderError, message: messageOf(error) }
  const facts: Record<string, unknown> = { provider: 'skein', modality: 'llm' }
  if (isUPPError(error)) {
    for (const field of upp) if (error[field] !== undefined) facts[field] = error[field]
    if (error.retryAfterMs !== undefined) facts['retryAfterMs'] = error.retryAfterMs
  }
  return JSON.stringify({ ...facts, ...json })
}

/** Restores an error written by `failureToText`: a `UPPError` for UPP's codes, otherwise a `SkeinError`. */
export function failureFromText(text: string): SkeinError {
  const json: unknown = JSON.parse(text)
  const { code, message, hint, ...facts } = isPlainObject(json) ? json : {}
  const words = typeof message === 'string' ? message : 'The stream failed.'
  const hintText = typeof hint === 'string' ? hint : undefined
  const errorCode = Object.values(ErrorCode).find((one) => one === code)
  if (!errorCode) return new SkeinError(words, { code: String(code), hint: hintText })
  return new UPPError(words, {
    ...facts,
    code: errorCode,
    provider: String(facts['provider']),
    modality: facts['modality'] as Modality, // written by `failureToText`
    hint: hintText,
  })
}

/** The errors of a resumable stream itself; failures of the model are a `UPPError`. */
export const StreamErrorCode = {
  /** No stream has this id, or the stream has ended and was deleted. */
  NotFound: 'STREAM_NOT_FOUND',
  Exists: 'STREAM_EXISTS',
  /** Too many streams at the same time. */
  Limit: 'STREAM_LIMIT',
  /** One stream has too many events or characters. */
  TooLarge: 'STREAM_TOO_LARGE',
  /** The event to resume after does not exist. */
  Position: 'STREAM_POSITION',
  /** The log or the connection ended before the stream did. */
  Cut: 'STREAM_CUT',
} as const
/** The code of a `StreamError`. */
export type StreamErrorCode = (typeof StreamErrorCode)[keyof typeof StreamErrorCode]

/** A stream that cannot be read, resumed or continued; `code` says why. */
export class StreamError extends SkeinError {
  declare readonly code: StreamErrorCode
}

/** Creates the error for an id without a stream, or whose stream has expired. */
export function streamNotFound(id: string): StreamError {
  return new StreamError(`There is no stream "${id}".`, {
    code: StreamErrorCode.NotFound,
    hint: 'It was never started, or it ended so long ago that it has been forgotten.',
  })
}

/** Creates the error for too many streams. */
export function streamLimit(limit: number): StreamError {
  return new StreamError(`There are ${limit} streams already.`, {
    code: StreamErrorCode.Limit,
    hint: 'Wait until some have ended, keep ended ones for less time, or raise the limit.',
  })
}

/** Creates the error for a stream that exceeds the limits of its log. */
export function streamTooLarge(id: string, what: string): StreamError {
  return new StreamError(`The stream "${id}" has more than ${what}.`, {
    code: StreamErrorCode.TooLarge,
    hint: 'The model was stopped. Raise maxEvents or maxCharacters if this is meant to be.',
  })
}

/** Creates the error for a position that does not exist in the stream. */
export function streamPosition(id: string, after: unknown): StreamError {
  return new StreamError(`The stream "${id}" has no event ${JSON.stringify(after)}.`, {
    code: StreamErrorCode.Position,
    hint: 'Resume with the id of the last event that was received, or from the beginning.',
  })
}

/** Creates the error for a stream whose writer stopped before its end. */
export function streamCut(last: number): StreamError {
  return new StreamError(`The stream was cut after event ${last}.`, {
    code: StreamErrorCode.Cut,
    hint: `Read it again after event ${last}.`,
  })
}
