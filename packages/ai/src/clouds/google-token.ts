import { type Clock, encodeBase64Url, type JsonObject } from '@skein/base'
import { readCredentialFile } from '#credential-files'
import type { UPPError } from '../contract/error.ts'
import type { Fetch } from '../contract/provider.ts'
import { environment } from '../transport/keys.ts'
import { askForJson, askForText, credentialError } from './credential-request.ts'
import type { Expiring } from './expiring.ts'

/** An access token of Google Cloud. */
export interface GoogleToken extends Expiring {
  readonly token: string
}

/** Credentials as Google writes them in JSON files: of a service account, a user, or an external account. */
export type GoogleCredentials = JsonObject

/** What a token is asked with. */
export interface GoogleTokenSource {
  /** Default: the file of `GOOGLE_APPLICATION_CREDENTIALS` or of `gcloud`, on Node; then the metadata server. */
  readonly credentials?: GoogleCredentials | undefined
  readonly fetch: Fetch
  readonly clock: Clock
}

const PROVIDER = 'vertex'
const SCOPE = 'https://www.googleapis.com/auth/cloud-platform'
const TOKEN_URL = 'https://oauth2.googleapis.com/token'
const GRANT = 'urn:ietf:params:oauth:grant-type'
const TOKEN_TYPE = 'urn:ietf:params:oauth:token-type'
/** How long an assertion is valid: the most that Google accepts. */
const HOUR_S = 3600
/** Where there is no metadata server, nothing answers at all. */
const METADATA_MS = 3000

const encoder = new TextEncoder()

/** Asks for an access token, in the way that the credentials say. */
export async function askForGoogleToken(source: GoogleTokenSource): Promise<GoogleToken> {
  const credentials = source.credentials ?? (await credentialsOfFile())
  if (!credentials) return ofMetadataServer(source)
  switch (credentials['type']) {
    case 'service_account':
      return ofServiceAccount(credentials, source)
    case 'authorized_user':
      return ofUser(credentials, source)
    case 'external_account':
      return ofExternalAccount(credentials, source)
    default:
      throw unreadable(
        `have the type ${JSON.stringify(credentials['type'])}, which is not read here`,
      )
  }
}

async function credentialsOfFile(): Promise<GoogleCredentials | undefined> {
  const named = environment('GOOGLE_APPLICATION_CREDENTIALS')
  const path = named ?? '~/.config/gcloud/application_default_credentials.json'
  const text = await readCredentialFile(path)
  if (text === undefined) {
    if (named === undefined) return undefined
    throw unreadable('are in a file that does not exist (GOOGLE_APPLICATION_CREDENTIALS)')
  }
  try {
    return JSON.parse(text) as GoogleCredentials
  } catch {
    throw unreadable('are in a file that is not JSON') // the error of the parser quotes the file
  }
}

function unreadable(what: string): UPPError {
  return credentialError(
    PROVIDER,
    `the credentials ${what}.`,
    'Pass vertexWith({ token }) a function that asks google-auth-library for an access token.',
  )
}

/** Signs an assertion with the key of a service account, and exchanges it. */
async function ofServiceAccount(
  credentials: GoogleCredentials,
  { fetch, clock }: GoogleTokenSource,
): Promise<GoogleToken> {
  const url = tokenUri(credentials)
  const assertion = await signedAssertion(credentials, url, clock.now())
  return exchange({ grant_type: `${GRANT}:jwt-bearer`, assertion }, { url, fetch, clock })
}

/** Returns a JSON Web Token (RFC 7523) that asks for an access token. */
export async function signedAssertion(
  credentials: GoogleCredentials,
  audience: string,
  now: number,
): Promise<string> {
  const issuer = textIn(credentials, 'client_email')
  const pem = textIn(credentials, 'private_key')
  if (issuer === undefined || pem === undefined)
    throw unreadable('of the service account have no client_email or no private_key')
  const issuedAt = Math.floor(now / 1000)
  const header = { alg: 'RS256', typ: 'JWT', kid: textIn(credentials, 'private_key_id') }
  const claims = { iss: issuer, scope: SCOPE, aud: audience, exp: issuedAt + HOUR_S, iat: issuedAt }
  const part = (value: object): string => encodeBase64Url(encoder.encode(JSON.stringify(value)))
  const signed = `${part(header)}.${part(claims)}`
  const algorithm = { name: 'RSASSA-PKCS1-v1_5', hash: 'SHA-256' }
  let signature: ArrayBuffer
  try {
    const key = await crypto.subtle.importKey('pkcs8', bytesOfPem(pem), algorithm, false, ['sign'])
    signature = await crypto.subtle.sign(algorithm.name, key, encoder.encode(signed))
  } catch {
    throw unreadable('of the service account have a private_key that is no key (PKCS #8)')
  }
  return `${signed}.${encodeBase64Url(new Uint8Array(signature))}`
}

function bytesOfPem(pem: string): Uint8Array<ArrayBuffer> {
  const base64 = pem.replace(/-----[^-]+-----|\s+/g, '')
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
}

/** Exchanges the refresh token that `gcloud auth application-default login` has stored. */
function ofUser(
  credentials: GoogleCredentials,
  { fetch, clock }: GoogleTokenSource,
): Promise<GoogleToken> {
  const { client_id, client_secret, refresh_token } = credentials
  if (![client_id, client_secret, refresh_token].every((value) => typeof value === 'string'))
    throw unreadable('of the user are not complete')
  const fields = { client_id, client_secret, refresh_token, grant_type: 'refresh_token' }
  return exchange(fields as Record<string, string>, { url: tokenUri(credentials), fetch, clock }) // prettier-ignore
}

/** Exchanges the token of another identity (workload identity federation), and acts as a service account if asked. */
async function ofExternalAccount(
  credentials: GoogleCredentials,
  { fetch, clock }: GoogleTokenSource,
): Promise<GoogleToken> {
  const url = httpsOf(credentials, 'token_url')
  const impersonation = credentials['service_account_impersonation_url']
  const first = await exchange(
    {
      grant_type: `${GRANT}:token-exchange`,
      audience: textIn(credentials, 'audience') ?? '',
      scope: SCOPE,
      requested_token_type: `${TOKEN_TYPE}:access_token`,
      subject_token: await subjectToken(credentials, fetch),
      subject_token_type: textIn(credentials, 'subject_token_type') ?? `${TOKEN_TYPE}:jwt`,
    },
    { url, fetch, clock },
  )
  if (impersonation === undefined) return first
  const answer = await askForJson({
    provider: PROVIDER,
    source: 'the impersonation of a service account',
    url: httpsOf(credentials, 'service_account_impersonation_url'),
    init: {
      method: 'POST',
      headers: { authorization: `Bearer ${first.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ scope: [SCOPE], lifetime: `${HOUR_S}s` }),
    },
    fetch,
  })
  const { accessToken, expireTime } = answer
  if (typeof accessToken !== 'string')
    throw credentialError(PROVIDER, 'the impersonation of a service account gave no token.')
  return { token: accessToken, expiresAt: Date.parse(String(expireTime)) }
}

/** Reads the token of the other identity, from a file or from an address near the program. */
async function subjectToken(credentials: GoogleCredentials, fetch: Fetch): Promise<string> {
  const source = (credentials['credential_source'] ?? {}) as JsonObject
  const file = textIn(source, 'file')
  const url = textIn(source, 'url')
  let text: string | undefined
  if (file !== undefined) text = await readCredentialFile(file)
  else if (url !== undefined && source['environment_id'] === undefined) {
    const headers = (source['headers'] ?? {}) as Record<string, string>
    text = await askForText({ provider: PROVIDER, source: 'the other identity', url, init: { headers }, fetch }) // prettier-ignore
  } else throw unreadable('have a credential_source that is neither a file nor an address')
  if (text === undefined) throw unreadable('name a token file that does not exist')
  const format = (source['format'] ?? {}) as JsonObject
  if (format['type'] !== 'json') return text.trim()
  try {
    const field = textIn(format, 'subject_token_field_name') ?? ''
    const value = (JSON.parse(text) as JsonObject)[field]
    if (typeof value === 'string') return value
  } catch {
    // The text may be a secret, so neither it nor the error of the parser is quoted.
  }
  throw unreadable('name a token that is not where format.subject_token_field_name says')
}

/** Asks the metadata server of Google Cloud for the token of the machine's service account. */
async function ofMetadataServer({ fetch, clock }: GoogleTokenSource): Promise<GoogleToken> {
  const host = environment('GCE_METADATA_HOST') ?? 'metadata.google.internal'
  const path = '/computeMetadata/v1/instance/service-accounts/default/token'
  const init = { headers: { 'metadata-flavor': 'Google' } }
  const source = 'the metadata server'
  try {
    const answer = await askForJson({ provider: PROVIDER, source, url: `http://${host}${path}`, init, fetch, limitMs: METADATA_MS }) // prettier-ignore
    return tokenOf(answer, source, clock)
  } catch (error) {
    throw credentialError(
      PROVIDER,
      `there is no file of credentials, and ${error instanceof Error ? error.message.replace(/^.*?: /, '') : 'no metadata server.'}`,
      'Set GOOGLE_APPLICATION_CREDENTIALS, run gcloud auth application-default login, or pass vertexWith({ credentials }).',
    )
  }
}

interface Exchange {
  readonly url: string
  readonly fetch: Fetch
  readonly clock: Clock
}

async function exchange(
  fields: Readonly<Record<string, string>>,
  { url, fetch, clock }: Exchange,
): Promise<GoogleToken> {
  const source = 'the token endpoint of Google'
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  const init = { method: 'POST', headers, body: new URLSearchParams(fields).toString() }
  return tokenOf(await askForJson({ provider: PROVIDER, source, url, init, fetch }), source, clock)
}

function tokenOf(answer: JsonObject, source: string, clock: Clock): GoogleToken {
  const { access_token: token, expires_in: seconds } = answer
  if (typeof token !== 'string' || token === '')
    throw credentialError(PROVIDER, `${source} gave no token.`)
  const lifetime = Number(seconds)
  return { token, expiresAt: Number.isFinite(lifetime) ? clock.now() + lifetime * 1000 : undefined }
}

function textIn(object: JsonObject, name: string): string | undefined {
  const value = object[name]
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Returns the address that the file names for tokens, or Google's. */
function tokenUri(credentials: GoogleCredentials): string {
  return textIn(credentials, 'token_uri') === undefined
    ? TOKEN_URL
    : httpsOf(credentials, 'token_uri')
}

/** Returns an address to which a token is sent: HTTPS, or on this machine. */
function httpsOf(credentials: GoogleCredentials, name: string): string {
  const url = textIn(credentials, name) ?? ''
  const { protocol, hostname } = URL.canParse(url) ? new URL(url) : new URL('none://none')
  const isNear = protocol === 'http:' && /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(hostname)
  if (protocol === 'https:' || isNear) return url
  throw unreadable(`have a ${name} that is no HTTPS address`)
}
