import { isPlainObject, SkeinError } from '@skein/base'

/** A request that the server refused, or that did not get there. */
export class ClientError extends SkeinError {
  /** Of the answer; 0 when there was none. */
  readonly status: number
  readonly problems: readonly { readonly field: string; readonly message: string }[]
  /** How long the server asks to wait. */
  readonly retryAfterMs: number | undefined

  constructor(
    message: string,
    options: {
      readonly code: string
      readonly status: number
      readonly hint?: string | undefined
      readonly problems?: ClientError['problems']
      readonly retryAfterMs?: number | undefined
      readonly cause?: unknown
    },
  ) {
    super(message, options)
    this.status = options.status
    this.problems = options.problems ?? []
    this.retryAfterMs = options.retryAfterMs
  }

  /** Whether the same request may work later. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 408 || this.status === 429 || this.status >= 500
  }
}

/** The error that an answer says. */
export async function toClientError(response: Response): Promise<ClientError> {
  const { status, headers } = response
  const wait = Number(headers.get('retry-after') ?? Number.NaN)
  const retryAfterMs = Number.isFinite(wait) ? wait * 1000 : undefined
  const body: unknown = await response.json().catch(() => undefined) // a proxy may answer anything
  const error = isPlainObject(body) && isPlainObject(body['error']) ? body['error'] : {}
  const { code = 'UNKNOWN', message = `The server answered ${status}.`, hint, problems } = error
  return new ClientError(String(message), {
    code: String(code),
    status,
    retryAfterMs,
    ...(typeof hint === 'string' && { hint }),
    ...(Array.isArray(problems) && { problems: problems as ClientError['problems'] }), // as the server has it
  })
}

/** The error of a request that got no answer. */
export function notReached(cause: unknown): ClientError {
  return new ClientError('The server could not be reached.', {
    code: 'NOT_REACHED',
    status: 0,
    hint: 'Check the address, and that the server runs.',
    cause,
  })
}
