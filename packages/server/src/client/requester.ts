import { isPlainObject, SkeinError } from '@skein/base'
import { addressOf, type OperationId, type PathParams } from '../operations/addresses.ts'

/** The address of the server and the key. */
export interface RequesterOptions {
  /** The address of the server, with its prefix. */
  readonly url: string
  readonly apiKey?: string
  readonly fetch?: typeof fetch
}

interface RequestInput {
  readonly query?: Readonly<Record<string, string | number | boolean | null | undefined>>
  /** The body, which is sent as JSON. */
  readonly json?: unknown
  readonly body?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

/** Sends requests for the operations of one server. Refusals are thrown as `ClientError`. */
export interface Requester {
  /** Returns the response itself. */
  send<Id extends OperationId>(
    id: Id,
    params: PathParams<Id>,
    input?: RequestInput,
  ): Promise<Response>
  /** Returns the JSON of the response; undefined when it has no content. */
  call<Id extends OperationId, T>(id: Id, params: PathParams<Id>, input?: RequestInput): Promise<T>
  /** Returns one field of the JSON of the response, because lists are sent as `{ threads: […] }`. */
  pick<Id extends OperationId, T>(
    id: Id,
    params: PathParams<Id>,
    field: string,
    input?: RequestInput,
  ): Promise<T>
}

/** Creates a requester for a server. Methods and paths come from the list of operations. */
export function createRequester({
  url,
  apiKey,
  fetch = globalThis.fetch,
}: RequesterOptions): Requester {
  let end = url.length
  while (url[end - 1] === '/') end--
  const base = url.slice(0, end)
  const own: Record<string, string> =
    apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
  const send: Requester['send'] = async (id, params, { json, body, signal, ...input } = {}) => {
    const { method, path } = addressOf(id)
    const type: Record<string, string> =
      json === undefined ? {} : { 'content-type': 'application/json' }
    const query = new URLSearchParams()
    for (const [name, value] of Object.entries(input.query ?? {}))
      if (value !== undefined && value !== null) query.set(name, String(value))
    const search = query.size > 0 ? `?${query}` : ''
    // `fetch` is called as a plain function, because browsers refuse it as a method of another object.
    const response = await fetch(`${base}${filled(path, params)}${search}`, {
      method,
      headers: { ...own, ...type, ...input.headers },
      // The cast is safe, because `fetch` also accepts bytes.
      body: json === undefined ? (body as BodyInit | undefined) : JSON.stringify(json),
      signal,
    }).catch((error: unknown) => {
      throw signal?.aborted ? error : notReached(error)
    })
    if (response.ok || response.status === 304) return response
    throw await toClientError(response)
  }
  const call: Requester['call'] = async (id, params, input) => {
    const text = await (await send(id, params, input)).text()
    return text === '' ? undefined : JSON.parse(text)
  }
  return {
    send,
    call,
    async pick(id, params, field, input) {
      const answer: Record<string, never> = await call(id, params, input)
      return answer[field]!
    },
  }
}

function filled(path: string, params: Readonly<Record<string, string>>): string {
  return path.replace(/\{(\w+)(\*?)\}/g, (_, name: string, rest: string) => {
    const value = params[name]!
    const segments = value.split('/')
    // An address cannot contain empty segments, `.` or `..`. In a path with such segments, the slashes are
    // encoded, too.
    const isPlain = segments.every((part) => part !== '' && part !== '.' && part !== '..')
    return rest && isPlain ? segments.map(encodeURIComponent).join('/') : encodeURIComponent(value)
  })
}

/** The error for a request that the server refused, or that did not reach the server. */
export class ClientError extends SkeinError {
  /** The status of the response; 0 when there was none. */
  readonly status: number
  /** The invalid fields of the request. */
  readonly problems: readonly { readonly field: string; readonly message: string }[]
  /** How long the server asks the client to wait. */
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

/** Creates the error that a response describes. */
async function toClientError(response: Response): Promise<ClientError> {
  const { status, headers } = response
  const wait = Number(headers.get('retry-after') ?? Number.NaN)
  const retryAfterMs = Number.isFinite(wait) ? wait * 1000 : undefined
  // The response of a proxy may not be JSON.
  const body: unknown = await response.json().catch(() => undefined)
  const error = isPlainObject(body) && isPlainObject(body['error']) ? body['error'] : {}
  const { code = 'UNKNOWN', message = `The server answered ${status}.`, hint, problems } = error
  return new ClientError(String(message), {
    code: String(code),
    status,
    retryAfterMs,
    hint: typeof hint === 'string' ? hint : undefined,
    // Our server sends problems in this form.
    problems: Array.isArray(problems) ? (problems as ClientError['problems']) : undefined,
  })
}

/** Creates the error for a request that got no response. */
export function notReached(cause: unknown): ClientError {
  return new ClientError('The server could not be reached.', {
    code: 'NOT_REACHED',
    status: 0,
    hint: 'Check the address, and that the server runs.',
    cause,
  })
}

/**
 * Resolves to true when the removal succeeds, and to false when it fails with `code`, which means that there
 * was nothing to remove.
 */
export async function isThere(done: Promise<void>, code: string): Promise<boolean> {
  try {
    await done
    return true
  } catch (error) {
    if (error instanceof ClientError && error.code === code) return false
    throw error
  }
}
