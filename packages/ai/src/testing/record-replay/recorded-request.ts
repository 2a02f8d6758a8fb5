import { canonicalJson, encodeBase64, type JsonValue } from '@skein/base'
import { hideIn, isSecretHeader, REDACTED, secretsIn } from './hide-secrets.ts'
import type { RecordedBody, RecordedPart, RecordedRequest } from './recording.ts'
import { toRecordedChunk } from './recorded-bytes.ts'

export interface ReadRequest {
  readonly recorded: RecordedRequest
  /** What must not show anywhere in the recording. */
  readonly secrets: readonly string[]
}

/** A request as it is kept: without secrets, the same for the same call. */
export async function readRequest(
  input: string,
  init: RequestInit,
  more: readonly string[],
): Promise<ReadRequest> {
  const headers = new Headers(init.headers)
  const secrets = [...secretsIn(input, headers), ...more]
  const body = await readBody(init.body)
  const isForm = init.body instanceof FormData
  return {
    secrets,
    recorded: {
      method: (init.method ?? 'GET').toUpperCase(),
      url: hideIn(hideQuery(input), secrets),
      headers: toHeaders(headers, secrets, isForm),
      ...(body && { body: hideInBody(body, secrets) }),
    },
  }
}

const secretParams = ['key', 'api_key', 'apikey', 'api-key', 'access_token', 'token']

function hideQuery(address: string): string {
  const url = new URL(address)
  for (const name of secretParams)
    if (url.searchParams.has(name)) url.searchParams.set(name, REDACTED)
  return url.href
}

/** The boundary of a form is random; its parts are kept instead. */
function toHeaders(
  headers: Headers,
  secrets: readonly string[],
  isForm: boolean,
): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const [name, value] of [...headers].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (isForm && name === 'content-type') continue
    kept[name] = isSecretHeader(name) ? REDACTED : hideIn(value, secrets)
  }
  return kept
}

async function readBody(body: RequestInit['body']): Promise<RecordedBody | undefined> {
  if (body === undefined || body === null) return undefined
  if (typeof body === 'string') return { text: body }
  if (body instanceof FormData) return { form: await readForm(body) }
  return toRecordedChunk(new Uint8Array(await new Response(body).arrayBuffer()))
}

async function readForm(form: FormData): Promise<readonly [string, RecordedPart][]> {
  const parts: [string, RecordedPart][] = []
  for (const [name, value] of form) {
    if (typeof value === 'string') parts.push([name, value])
    else {
      const { name: filename, type } = value
      const base64 = encodeBase64(new Uint8Array(await value.arrayBuffer()))
      parts.push([name, { filename, type, base64 }])
    }
  }
  return parts
}

function hideInBody(body: RecordedBody, secrets: readonly string[]): RecordedBody {
  return 'text' in body ? { text: hideIn(body.text, secrets) } : body
}

/** What two requests must share to be the same: method, address and body; of JSON, its meaning. */
export function requestKey({ method, url, body }: RecordedRequest): string {
  const said = body && 'text' in body ? meaningOf(body.text) : JSON.stringify(body ?? null)
  return `${method} ${url} ${said}`
}

function meaningOf(text: string): string {
  try {
    return canonicalJson(JSON.parse(text) as JsonValue)
  } catch {
    return JSON.stringify(text)
  }
}
