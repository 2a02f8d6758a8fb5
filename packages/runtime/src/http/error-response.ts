import { SkeinError } from '@skein/base'
import {
  HttpError,
  STATUS,
  threadNotFound,
  type ErrorBody,
  type ApiErrorCode,
} from '../operations/http-error.ts'
import { jsonResponse } from '../operations/operation.ts'

/** The response to an error. An unexpected error is reported to the operator, and the client gets its id only. */
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

/** The code under which metrics count an error. */
export function errorCodeOf(error: unknown): ApiErrorCode {
  return toKnown(error)?.code ?? 'INTERNAL'
}

/** The errors whose messages a client may read; undefined for all others. */
function toKnown(error: unknown): (SkeinError & { code: ApiErrorCode }) | undefined {
  if (!SkeinError.is(error) || !(error.code in STATUS)) return undefined
  if (error.code === 'THREAD_NOT_FOUND') return threadNotFound()
  const known = error as SkeinError & { code: ApiErrorCode } // looked up just above
  return STATUS[known.code] === 500 ? undefined : known
}

function written(error: SkeinError & { code: ApiErrorCode }): Response {
  const { code, message, hint } = error
  const { problems = [], headers = {} } = error instanceof HttpError ? error : {}
  const body: ErrorBody = {
    error: { code, message, hint, problems: problems.length > 0 ? problems : undefined },
  }
  return jsonResponse(body, { status: STATUS[code], headers })
}
