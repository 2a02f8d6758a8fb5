import { isPlainObject, type JsonValue, untilAborted } from '@skein/base'
import { cancelledError, ErrorCode, isUPPError, UPPError } from '../contract/error.ts'
import type { LLMRequest } from '../contract/provider.ts'
import { codeForStatus, type VendorError } from '../contract/vendor-error.ts'
import { httpError } from '../transport/http-error.ts'
import { defaultRetry, isRetryable } from '../transport/retry.ts'
import { sleep } from '../transport/time-limits.ts'
import { decodeError as readAnthropicError } from '../wires/anthropic-messages/error.ts'
import { decodeError as readGoogleError } from '../wires/google-generate/error.ts'
import { readOpenAIError } from '../wires/openai-error.ts'
import { objectOf, stringOf, textOf } from '../wires/read-json.ts'

/** Asks until there is an answer, as the transport does for vendors of this package. */
export async function withRetries<T>(
  request: LLMRequest,
  provider: string,
  ask: () => Promise<T>,
): Promise<T> {
  const { config, signal } = request
  const strategy = config.retryStrategy ?? defaultRetry
  for (let attempt = 1; ; attempt++) {
    try {
      const wait = await untilAborted(signal, Promise.resolve(strategy.beforeRequest?.() ?? 0))
      if (wait > 0) await sleep(wait, signal)
      const answer = await ask()
      strategy.reset?.()
      return answer
    } catch (thrown) {
      const error = aiSdkError(thrown, request, provider)
      const retry = isRetryable(error)
        ? await untilAborted(signal, Promise.resolve(strategy.onRetry(error, attempt)))
        : null
      if (typeof retry !== 'number' || !Number.isFinite(retry)) throw error
      await sleep(Math.max(0, retry), signal).catch((left: unknown) => {
        throw aiSdkError(left, request, provider)
      })
    }
  }
}

/**
 * Converts an error of the AI SDK. Its message and body may quote the key, which only the AI SDK knows, so the error
 * has their code and no word of them.
 */
export function aiSdkError(
  error: unknown,
  { signal, clock }: Pick<LLMRequest, 'signal' | 'clock'>,
  provider: string,
): UPPError {
  const context = { provider, modality: 'llm' } as const
  if (isUPPError(error)) return error
  if (signal.aborted) return cancelledError(signal, context)
  const failure: AiSdkFailure = isPlainObject(error) || error instanceof Error ? error : {}
  const { statusCode: status, responseHeaders = {}, name = '' } = failure
  const text = bodyOf(failure)
  const decodeError = readerOf(provider)
  const headers = new Headers()
  for (const [header, value] of Object.entries(responseHeaders))
    if (typeof value === 'string') headers.set(header, value)
  // The body is read as if its response had just arrived, for the code in it and for how long to wait.
  const facts = httpError(
    { status: status ?? 500, headers, text },
    { context, decodeError, keyVariables: [], now: clock.now() },
  )
  const code =
    status !== undefined || facts.vendorCode !== undefined || facts.vendorType !== undefined
      ? facts.code
      : (codeOfName(name) ?? (isConnection(failure) ? ErrorCode.NetworkError : facts.code))
  const what = status === undefined ? 'failed' : `answered HTTP ${status}`
  return new UPPError(`${provider} ${what}${reasons[code] ?? ''}.`, {
    code,
    ...context,
    statusCode: status,
    vendorCode: facts.vendorCode,
    vendorType: facts.vendorType,
    requestId: facts.requestId,
    retryAfterMs: facts.retryAfterMs,
    shouldRetry: facts.shouldRetry,
    rateLimit: facts.rateLimit,
    hint: 'The error of the AI SDK is not kept, because its text may contain the key. Call its model directly to see it.',
  })
}

/** What errors of the AI SDK have in common; an error part of a stream may be any object. */
interface AiSdkFailure {
  readonly name?: string
  readonly message?: string
  readonly statusCode?: number
  readonly responseHeaders?: Readonly<Record<string, string>>
  readonly responseBody?: unknown
  readonly cause?: unknown
}

/** What a code says that the HTTP status does not. */
const reasons: Partial<Record<ErrorCode, string>> = {
  [ErrorCode.ContextLengthExceeded]: ': the context is too long',
  [ErrorCode.ContentFiltered]: ': the content was filtered',
  [ErrorCode.QuotaExceeded]: ': the quota is used up',
}

function bodyOf(failure: AiSdkFailure): string {
  const { responseBody } = failure
  if (typeof responseBody === 'string') return responseBody
  // An error in a stream is the vendor's error object itself, or has it in `error`.
  const own = failure as Readonly<Record<string, unknown>>
  if (!('type' in own || 'code' in own || 'error' in own)) return ''
  const { type, code, status, message, error } = own
  return JSON.stringify({ error: error ?? { type, code, status, message } })
}

type ReadError = (response: Parameters<typeof readOpenAIError>[0]) => VendorError

function readerOf(provider: string): ReadError {
  if (/^anthropic|anthropic$/.test(provider)) return readAnthropicError
  if (/^(google|vertex)/.test(provider)) return readGoogleError
  return provider.startsWith('amazon') ? readBedrockError : readOpenAIError
}

/** Reads an error of Bedrock, which has only a message, and its type in a header. */
function readBedrockError({ json, headers, status }: Parameters<ReadError>[0]): VendorError {
  const message = stringOf(objectOf(json as JsonValue)?.['message']) ?? ''
  const vendorType = textOf(headers.get('x-amzn-errortype'))?.split(':')[0]
  const code = /too long|context length|context window|maximum number of tokens/i.test(message)
    ? ErrorCode.ContextLengthExceeded
    : codeForStatus(status)
  return { message, code, ...(vendorType !== undefined && { vendorType }) }
}

/** The codes of errors that the AI SDK itself makes, by their name. */
function codeOfName(name: string): ErrorCode | undefined {
  return names.find(([words]) => words.test(name))?.[1]
}

const names: readonly (readonly [RegExp, ErrorCode])[] = [
  [/LoadAPIKey/, ErrorCode.AuthenticationFailed],
  [/NoSuchModel/, ErrorCode.ModelNotFound],
  [/UnsupportedFunctionality|InvalidPrompt|InvalidArgument|LoadSetting|TooManyEmbedding/, ErrorCode.InvalidRequest],
  [/TypeValidation|JSONParse|InvalidResponseData|EmptyResponseBody|NoContentGenerated/, ErrorCode.InvalidResponse],
] // prettier-ignore

/** True if no response arrived: the AI SDK reports a connection that failed without a status. */
function isConnection({ name, message = '', cause }: AiSdkFailure): boolean {
  return name === 'AI_APICallError' || (cause instanceof Error && /fetch failed|connect/i.test(message)) || /fetch failed|Cannot connect/i.test(message) // prettier-ignore
}
