import { SkeinError } from '@skein/base'

/** What can go wrong with a resumable stream itself; failures of the model come as `UPPError`. */
export const StreamErrorCode = {
  /** No stream has this id, or it has been forgotten. */
  NotFound: 'STREAM_NOT_FOUND',
  Exists: 'STREAM_EXISTS',
  /** Too many streams at once. */
  Limit: 'STREAM_LIMIT',
  /** One stream has too many events or characters. */
  TooLarge: 'STREAM_TOO_LARGE',
  /** There is no such event to go on from. */
  Position: 'STREAM_POSITION',
  /** The log or the connection ended without the last event. */
  Cut: 'STREAM_CUT',
} as const
export type StreamErrorCode = (typeof StreamErrorCode)[keyof typeof StreamErrorCode]

export class StreamError extends SkeinError {
  declare readonly code: StreamErrorCode
}

export function streamNotFound(id: string): StreamError {
  return new StreamError(`There is no stream "${id}".`, {
    code: StreamErrorCode.NotFound,
    hint: 'It was never started, or it ended so long ago that it has been forgotten.',
  })
}

export function streamExists(id: string): StreamError {
  return new StreamError(`There is a stream "${id}" already.`, {
    code: StreamErrorCode.Exists,
    hint: 'Give every stream an id of its own.',
  })
}

export function streamLimit(limit: number): StreamError {
  return new StreamError(`There are ${limit} streams already.`, {
    code: StreamErrorCode.Limit,
    hint: 'Wait until some have ended, keep ended ones for less time, or raise the limit.',
  })
}

export function streamTooLarge(id: string, what: string): StreamError {
  return new StreamError(`The stream "${id}" has more than ${what}.`, {
    code: StreamErrorCode.TooLarge,
    hint: 'The model was stopped. Raise maxEvents or maxCharacters if this is meant to be.',
  })
}

export function streamPosition(id: string, after: unknown): StreamError {
  return new StreamError(`The stream "${id}" has no event ${JSON.stringify(after)}.`, {
    code: StreamErrorCode.Position,
    hint: 'Resume with the id of the last event that was received, or from the beginning.',
  })
}

export function streamCut(last: number): StreamError {
  return new StreamError(`The stream was cut after event ${last}.`, {
    code: StreamErrorCode.Cut,
    hint: `Read it again after event ${last}.`,
  })
}
