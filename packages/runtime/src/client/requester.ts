import { isPlainObject, SkeinError } from '@skein/base'

export interface RequesterOptions {
  /** Of the server, with its prefix. */
  readonly url: string
  readonly apiKey?: string
  readonly fetch?: typeof fetch
}

interface RequestInput {
  readonly query?: Readonly<Record<string, string | number | boolean | null | undefined>>
  /** Sent as JSON. */
  readonly json?: unknown
  readonly body?: string | Uint8Array
  readonly headers?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal | undefined
}

/** Sends requests to one server; refusals are thrown as `ClientError`. */
export class Requester {
  readonly #base: string
  readonly #headers: Readonly<Record<string, string>>
  readonly #fetch: typeof fetch

  constructor({ url, apiKey, fetch = globalThis.fetch }: RequesterOptions) {
    this.#base = url.replace(/\/+$/, '')
    this.#headers = apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}` }
    // Browsers refuse a fetch that is called as a method of something else.
    this.#fetch = (input, init) => fetch(input, init)
  }

  async send(method: string, path: string, input: RequestInput = {}): Promise<Response> {
    const { json, body, signal } = input
    const headers = {
      ...this.#headers,
      ...(json !== undefined && { 'content-type': 'application/json' }),
      ...input.headers,
    }
    const content = json === undefined ? (body as BodyInit | undefined) : JSON.stringify(json) // bytes of any buffer are a body
    const response = await this.#fetch(`${this.#base}${path}${search(input.query)}`, {
      method,
      headers,
      ...(content !== undefined && { body: content }),
      ...(signal && { signal }),
    }).catch((error: unknown) => {
      throw signal?.aborted ? error : notReached(error)
    })
    if (response.ok || response.status === 304) return response
    throw await toClientError(response)
  }

  /** The JSON of an answer; undefined when it has none. */
  async json<T>(method: string, path: string, input?: RequestInput): Promise<T> {
    const response = await this.send(method, path, input)
    const text = await response.text()
    return (text === '' ? undefined : JSON.parse(text)) as T // the server's routes say what they answer
  }
}

function search(query: RequestInput['query'] = {}): string {
  const params = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== null) params.set(name, String(value))
  return params.size > 0 ? `?${params}` : ''
}

/** A path with its parts encoded: ``path`/threads/${id}` ``. */
export function path(texts: TemplateStringsArray, ...parts: readonly string[]): string {
  return texts.reduce((left, right, index) => left + encodeURIComponent(parts[index - 1]!) + right)
}

/** The path of a file, which begins with a slash, as the rest of an address. */
export function restPath(name: string): string {
  return name.replace(/^\//, '').split('/').map(encodeURIComponent).join('/')
}

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
async function toClientError(response: Response): Promise<ClientError> {
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

/** False instead of a refusal that says there was nothing. */
export async function isThere(done: Promise<void>, code: string): Promise<boolean> {
  try {
    await done
    return true
  } catch (error) {
    if (error instanceof ClientError && error.code === code) return false
    throw error
  }
}
