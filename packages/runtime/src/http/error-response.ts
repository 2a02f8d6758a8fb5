import { SkeinError, type JsonObject } from '@skein/base'
import {
  HttpError,
  STATUS,
  threadNotFound,
  type ErrorCode,
  type RequestProblem,
} from '../operations/http-error.ts'
import { jsonResponse } from '../operations/operation.ts'

/** The one shape of every error. */
export interface ErrorBody {
  readonly error: {
    readonly code: string
    readonly message: string
    readonly hint?: string
    readonly problems?: readonly RequestProblem[]
  }
}

/** Says what went wrong, in the one shape. What nobody expected is reported and told by an id alone. */
export function errorResponse(
  error: unknown,
  unexpected: { readonly id: () => string; readonly report: (error: unknown, id: string) => void },
): Response {
  const known = toKnown(error)
  if (known) return written(known)
  const id = unexpected.id()
  unexpected.report(error, id)
  return written(
    new HttpError('Something went wrong on the server.', {
      code: 'INTERNAL',
      hint: `Ask the operator to look for error ${id}.`,
    }),
  )
}

/** The word for an error in counters. */
export function errorCodeOf(error: unknown): ErrorCode {
  return toKnown(error)?.code ?? 'INTERNAL'
}

/** Errors that a client may read as they are. */
function toKnown(error: unknown): (SkeinError & { code: ErrorCode }) | undefined {
  if (!SkeinError.is(error) || !(error.code in STATUS)) return undefined
  if (error.code === 'THREAD_NOT_FOUND') return threadNotFound()
  const known = error as SkeinError & { code: ErrorCode } // looked up just above
  return STATUS[known.code] === 500 ? undefined : known
}

function written(error: SkeinError & { code: ErrorCode }): Response {
  const { code, message, hint } = error
  const { problems = [], headers = {} } = error instanceof HttpError ? error : {}
  const body: ErrorBody = {
    error: {
      code,
      message,
      ...(hint !== undefined && { hint }),
      ...(problems.length > 0 && { problems }),
    },
  }
  return jsonResponse(body as unknown as JsonObject, { status: STATUS[code], headers })
}
