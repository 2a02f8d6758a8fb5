import type { JsonObject } from '@skein/base'
import type { Fetch } from '../contract/provider.ts'
import { ErrorCode, UPPError } from '../contract/error.ts'

/** How long a service of credentials may take. It is near: in the network of the machine, or of the cloud. */
const LIMIT_MS = 10_000

/** One request for credentials or tokens. Its errors name the service and never quote what was sent or answered. */
export interface CredentialRequest {
  /** The provider whose credentials they are, e.g. `bedrock`. */
  readonly provider: string
  /** What is asked, as it is named in errors, e.g. `the container's credentials`. */
  readonly source: string
  readonly url: string
  readonly init?: RequestInit
  readonly fetch: Fetch
  /** How long the service may take, in milliseconds. Default: 10 s. */
  readonly limitMs?: number
}

/** Sends a request and returns the text of its answer. */
export async function askForText(request: CredentialRequest): Promise<string> {
  const { provider, source, url, init, fetch, limitMs = LIMIT_MS } = request
  let response: Response
  let text: string
  try {
    response = await fetch(url, {
      ...init,
      redirect: 'error',
      signal: AbortSignal.timeout(limitMs),
    })
    text = await response.text()
  } catch (error) {
    const reason = error instanceof Error ? error.name : typeof error
    throw credentialError(provider, `${source} could not be reached (${reason}).`)
  }
  if (!response.ok)
    throw credentialError(provider, `${source} answered with HTTP ${response.status}.`)
  return text
}

/** Sends a request and returns the JSON object of its answer. */
export async function askForJson(request: CredentialRequest): Promise<JsonObject> {
  const text = await askForText(request)
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as JsonObject // parsed from JSON
  } catch {
    // The answer may hold a secret, so neither it nor the error of the parser is quoted.
  }
  throw credentialError(request.provider, `${request.source} did not answer with a JSON object.`)
}

/** Makes the error for credentials that cannot be obtained. */
export function credentialError(provider: string, message: string, hint?: string): UPPError {
  return new UPPError(`There are no credentials for ${provider}: ${message}`, {
    code: ErrorCode.AuthenticationFailed,
    provider,
    modality: 'llm',
    hint,
  })
}
