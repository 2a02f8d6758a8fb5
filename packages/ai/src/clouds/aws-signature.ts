/**
 * AWS Signature Version 4 (docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html), with
 * WebCrypto.
 */

/** A pair of keys, and the token of a session if they are temporary. */
export interface AwsKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string | undefined
}

/** What is signed. */
export interface SignatureInput {
  readonly method: string
  readonly url: string
  /** All of them are signed, with `host`; names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array<ArrayBuffer>
  readonly keys: AwsKeys
  readonly region: string
  readonly service: string
  /** Milliseconds since the epoch, by the clock of AWS. */
  readonly now: number
  /**
   * Whether the path is encoded once more and normalised, as all services but S3 expect it. Default true.
   */
  readonly encodesPath?: boolean
}

const ALGORITHM = 'AWS4-HMAC-SHA256'
const encoder = new TextEncoder()

/** Returns the headers that authenticate a request: `authorization`, `x-amz-date` and the session token. */
export async function signatureHeaders(input: SignatureInput): Promise<Record<string, string>> {
  const { keys, now } = input
  const date = amzDate(now)
  const added: Record<string, string> = { 'x-amz-date': date }
  if (keys.sessionToken !== undefined) added['x-amz-security-token'] = keys.sessionToken
  const { authorization } = await sign({ ...input, headers: { ...input.headers, ...added } }, date)
  return { ...added, authorization }
}

/** The parts of a signature, as AWS publishes them with its examples. */
export interface SignatureParts {
  readonly canonicalRequest: string
  readonly stringToSign: string
  readonly authorization: string
}

/** Signs a request that has all headers but `authorization`. `date` has the form `20150830T123600Z`. */
export async function sign(input: SignatureInput, date: string): Promise<SignatureParts> {
  const { method, body, keys, region, service, encodesPath = true } = input
  const url = new URL(input.url)
  const headers: Record<string, string> = { host: url.host, ...input.headers }
  const names = Object.keys(headers).toSorted()
  const signedHeaders = names.join(';')
  const canonicalRequest = [
    method,
    canonicalPath(url.pathname, encodesPath),
    canonicalQuery(url.search),
    ...names.map((name) => `${name}:${headers[name]!.trim().replace(/ +/g, ' ')}`),
    '',
    signedHeaders,
    headers['x-amz-content-sha256'] ?? (await hash(body)),
  ].join('\n')
  const day = date.slice(0, 8)
  const scope = `${day}/${region}/${service}/aws4_request`
  const digest = await hash(encoder.encode(canonicalRequest))
  const stringToSign = [ALGORITHM, date, scope, digest].join('\n')
  let key = encoder.encode(`AWS4${keys.secretAccessKey}`)
  for (const part of [day, region, service, 'aws4_request']) key = await hmac(key, part)
  const signature = hex(await hmac(key, stringToSign))
  const credential = `${keys.accessKeyId}/${scope}`
  const authorization = `${ALGORITHM} Credential=${credential}, SignedHeaders=${signedHeaders}, Signature=${signature}`
  return { canonicalRequest, stringToSign, authorization }
}

/** Writes a time as `20150830T123600Z`. */
export function amzDate(now: number): string {
  return new Date(now).toISOString().replace(/[-:]|\.\d{3}/g, '')
}

function canonicalPath(pathname: string, encodesPath: boolean): string {
  if (!encodesPath) return pathname
  return pathname.split('/').map(encodeStrictly).join('/')
}

function canonicalQuery(search: string): string {
  return search
    .slice(1)
    .split('&')
    .filter(Boolean)
    .map((pair) => {
      const equals = pair.indexOf('=')
      const [name, value] =
        equals < 0 ? [pair, ''] : [pair.slice(0, equals), pair.slice(equals + 1)]
      return [decodeQuery(name), decodeQuery(value)].map(encodeStrictly) as [string, string]
    })
    .toSorted(([a, b], [c, d]) => (a < c ? -1 : a > c ? 1 : b < d ? -1 : b > d ? 1 : 0))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}

function decodeQuery(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Encodes all but letters, digits and `-_.~`. */
function encodeStrictly(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

async function hash(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest('SHA-256', bytes)))
}

async function hmac(key: Uint8Array<ArrayBuffer>, text: string): Promise<Uint8Array<ArrayBuffer>> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const imported = await crypto.subtle.importKey('raw', key, algorithm, false, ['sign'])
  return new Uint8Array(await crypto.subtle.sign('HMAC', imported, encoder.encode(text)))
}

function hex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}
