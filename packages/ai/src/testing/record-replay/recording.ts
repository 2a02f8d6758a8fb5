import { canonicalJson, decodeBase64, encodeBase64, type JsonValue, SkeinError } from '@skein/base'
import { isSecretHeader } from '../../transport/config-secrets.ts'
import { joinBytes } from '../../media/bytes.ts'

/** Recorded HTTP traffic as plain data, stored in a readable file. */
export interface Recording {
  readonly version: 1
  /** The exchanges, in the order in which the requests were sent. */
  readonly exchanges: readonly Exchange[]
}

/** One request and its response. */
export interface Exchange {
  readonly request: RecordedRequest
  readonly response: RecordedResponse
}

/** A recorded request. */
export interface RecordedRequest {
  readonly method: string
  readonly url: string
  /** The headers, names in lower case and sorted; secrets are replaced. */
  readonly headers: Readonly<Record<string, string>>
  /** A text, the fields of a form, or bytes; absent if the request had no body. */
  readonly body?: RecordedBody
}

/** The body of a recorded request. */
export type RecordedBody =
  | { readonly text: string }
  | { readonly base64: string }
  | { readonly form: readonly (readonly [name: string, value: RecordedPart])[] }

/** A field of a form: its text, or a file. */
export type RecordedPart =
  string | { readonly filename: string; readonly type: string; readonly base64: string }

/** A recorded response. */
export interface RecordedResponse {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** The body, in the chunks in which it arrived. */
  readonly chunks: readonly RecordedChunk[]
  /**
   * Set if the body is incomplete: `failed` if the connection broke, `left` if the reader cancelled the
   * body.
   */
  readonly end?: 'failed' | 'left'
}

/** Text if the bytes are whole characters, otherwise base64. */
export type RecordedChunk = { readonly text: string } | { readonly base64: string }

/** Loads and saves one recording. */
export interface RecordingStore {
  load(): Promise<Recording | undefined>
  save(recording: Recording): Promise<void>
}

/** Keeps a recording in memory. */
export function memoryRecordings(recording?: Recording): RecordingStore {
  let kept = recording
  return {
    load: async () => kept,
    async save(changed) {
      kept = changed
    },
  }
}

/** Thrown if a recording does not contain a request, is missing, or has another version. */
export class RecordingError extends SkeinError {
  constructor(message: string, options: { code: string; hint?: string; cause?: unknown }) {
    super(message, options)
  }
}

/** Converts one chunk of a body. A chunk that splits a character becomes base64, so nothing is lost. */
export function toRecordedChunk(bytes: Uint8Array): RecordedChunk {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return { text }
  } catch {
    return { base64: encodeBase64(bytes) }
  }
}

/** Returns the bytes of a recorded chunk. */
export function fromRecordedChunk(chunk: RecordedChunk): Uint8Array {
  return 'text' in chunk ? new TextEncoder().encode(chunk.text) : decodeBase64(chunk.base64)
}

interface ReadRequest {
  readonly recorded: RecordedRequest
  /** Texts that must not appear in the recording. */
  readonly secrets: readonly string[]
}

/** Reads a request for a recording: secrets are removed, and equal calls give equal results. */
export async function recordRequest(
  input: string,
  init: RequestInit,
  more: readonly string[],
): Promise<ReadRequest> {
  const headers = new Headers(init.headers)
  // The secrets found in the headers and the address; those that the caller lists are added below.
  const own: string[] = []
  headers.forEach((value, name) => {
    if (isSecretHeader(name)) own.push(value, value.replace(/^\w+ /, ''))
  })
  for (const [, value = ''] of input.matchAll(secretQuery)) own.push(value)
  const secrets = [...new Set(own)].filter(({ length }) => length >= 4).concat(more)
  const body = await readBody(init.body)
  const url = new URL(input)
  for (const name of secretParams)
    if (url.searchParams.has(name)) url.searchParams.set(name, REDACTED)
  const result: Record<string, string> = {}
  for (const [name, value] of [...headers].sort(([a], [b]) => (a < b ? -1 : 1))) {
    // The content type of a form contains a random boundary, so it is left out; the fields of the form are recorded.
    if (init.body instanceof FormData && name === 'content-type') continue
    result[name] = isSecretHeader(name) ? REDACTED : hideIn(value, secrets)
  }
  return {
    secrets,
    recorded: {
      method: (init.method ?? 'GET').toUpperCase(),
      url: hideIn(url.href, secrets),
      headers: result,
      body: body && 'text' in body ? { text: hideIn(body.text, secrets) } : body,
    },
  }
}

const secretParams = ['key', 'api_key', 'apikey', 'api-key', 'access_token', 'token']

async function readBody(body: RequestInit['body']): Promise<RecordedBody | undefined> {
  if (body === undefined || body === null) return undefined
  if (typeof body === 'string') return { text: body }
  if (body instanceof FormData) {
    const form: [string, RecordedPart][] = []
    for (const [name, value] of body) {
      if (typeof value === 'string') form.push([name, value])
      else {
        const { name: filename, type } = value
        const base64 = encodeBase64(new Uint8Array(await value.arrayBuffer()))
        form.push([name, { filename, type, base64 }])
      }
    }
    return { form }
  }
  return toRecordedChunk(new Uint8Array(await new Response(body).arrayBuffer()))
}

/**
 * Returns a text that is equal for matching requests: method, address and body. JSON bodies are
 * compared as values.
 */
export function requestKey({ method, url, body }: RecordedRequest): string {
  let meaning = JSON.stringify(body && 'text' in body ? body.text : (body ?? null))
  if (body && 'text' in body) {
    try {
      meaning = canonicalJson(JSON.parse(body.text) as JsonValue)
    } catch {
      // a body that is not JSON is compared as text
    }
  }
  return `${method} ${url} ${meaning}`
}

/** The text that replaces a secret. */
export const REDACTED = '[redacted]'

const secretQuery = /[?&](?:key|api[_-]?key|access_token|token)=([^&#]+)/gi

/** Returns the text with every secret replaced. */
export function hideIn(text: string, secrets: readonly string[]): string {
  let hidden = text
  for (const secret of longestFirst(secrets)) hidden = hidden.replaceAll(secret, REDACTED)
  return hidden
}

/**
 * Overwrites secrets in a body that came in several chunks. Each byte of a secret becomes an asterisk,
 * so that the lengths and boundaries of the chunks do not change.
 */
export function hideInChunks(
  chunks: readonly Uint8Array[],
  secrets: readonly string[],
): readonly Uint8Array[] {
  if (secrets.length === 0) return chunks
  const whole = joinBytes(chunks)
  for (const text of longestFirst(secrets)) {
    const secret = new TextEncoder().encode(text)
    const first = secret[0]!
    for (let at = whole.indexOf(first); at >= 0; at = whole.indexOf(first, at + 1)) {
      if (secret.every((byte, offset) => whole[at + offset] === byte))
        whole.fill(ASTERISK, at, at + secret.length)
    }
  }
  let at = 0
  return chunks.map(({ length }) => whole.subarray(at, (at += length)))
}

function longestFirst(secrets: readonly string[]): readonly string[] {
  return secrets.toSorted((a, b) => b.length - a.length)
}

const ASTERISK = 42
