import { redactSecrets, SkeinError } from '@skein/base'
import {
  HttpError,
  STATUS,
  threadNotFound,
  type ErrorBody,
  type ApiErrorCode,
} from '../operations/http-error.ts'
import { jsonResponse } from '../operations/operation.ts'
import { isUnwritable } from '@skein/runtime/serving'

/**
 * Creates the response to an error. An unexpected error is reported to the operator; the client gets only its
 * id.
 */
export function errorResponse(
  error: unknown,
  unexpected: { readonly id: () => string; readonly report: (error: unknown, id: string) => void },
): Response {
  const clientError = toKnown(error)
  if (clientError && !isUnwritable(error)) return written(clientError)
  const id = unexpected.id()
  unexpected.report(error, id)
  // The message of the store names a path of the server, which is for the operator alone.
  if (clientError)
    return written(
      new HttpError('The server cannot store anything at the moment.', {
        code: clientError.code,
        hint: `Nothing was changed. Try again later; the operator finds error ${id}.`,
      }),
    )
  return written(
    new HttpError('Something went wrong on the server.', {
      code: 'INTERNAL',
      hint: `Ask the operator to look for error ${id}.`,
    }),
  )
}

/** Returns the error if the client may read it and can act on it; undefined for all other errors. */
export function clientError(error: unknown): (SkeinError & { code: ApiErrorCode }) | undefined {
  return isUnwritable(error) ? undefined : toKnown(error)
}

/** Returns the code under which an error is counted in the metrics. */
export function errorCodeOf(error: unknown): ApiErrorCode {
  return toKnown(error)?.code ?? 'INTERNAL'
}

/** Returns the error if a client may read its message; undefined for all other errors. */
function toKnown(error: unknown): (SkeinError & { code: ApiErrorCode }) | undefined {
  if (!SkeinError.is(error) || !(error.code in STATUS)) return undefined
  if (error.code === 'THREAD_NOT_FOUND') return threadNotFound()
  const apiError = error as SkeinError & { code: ApiErrorCode } // the code was found in STATUS above
  return STATUS[apiError.code] === 500 ? undefined : apiError
}

function written(error: SkeinError & { code: ApiErrorCode }): Response {
  const { code, message, hint } = error
  const { problems = [], headers = retryAfter(error) } = error instanceof HttpError ? error : {}
  const body: ErrorBody = {
    error: { code, message, hint, problems: problems.length > 0 ? problems : undefined },
  }
  return jsonResponse(body, { status: STATUS[code], headers })
}

function retryAfter(error: SkeinError): Readonly<Record<string, string>> {
  const { retryAfterMs } = error as { readonly retryAfterMs?: unknown }
  if (typeof retryAfterMs !== 'number') return {}
  return { 'retry-after': String(Math.ceil(retryAfterMs / 1000)) }
}

const MAX_LOGGED_PATH = 256
/** Returns the path without its query, which may contain keys and texts. */
export function loggedPath(request: Request): string {
  const { pathname } = new URL(request.url)
  return redactSecrets(pathname, credentialsOf(request)).slice(0, MAX_LOGGED_PATH)
}
/** Returns the secrets that the client sent, which errors may repeat. */
export function credentialsOf({ headers }: Request): readonly string[] {
  const texts = ['authorization', 'x-api-key', 'cookie', 'proxy-authorization'].flatMap(
    (name) => headers.get(name)?.split(/[\s;,=]+/) ?? [],
  )
  return texts.filter((text) => text.length >= 8)
}
