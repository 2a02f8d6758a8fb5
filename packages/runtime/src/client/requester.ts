import { notReached, toClientError } from './client-error.ts'

export interface RequesterOptions {
  /** Of the server, with its prefix. */
  readonly url: string
  readonly apiKey?: string
  readonly fetch?: typeof fetch
}

export interface RequestInput {
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
