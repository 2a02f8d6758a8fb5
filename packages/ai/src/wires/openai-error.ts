import { type JsonObject, type JsonValue } from '@skein/base'
import { ErrorCode } from '../contract/error.ts'
import { codeForStatus, type ErrorResponse, type VendorError } from '../contract/vendor-error.ts'
import { listOf, numberOf, objectOf, stringOf, textOf } from './read-json.ts'
import type { ServerError } from './wire.ts'

/**
 * Error codes, error types and OpenRouter's `metadata.error_type` of OpenAI and of vendors that use
 * its format, from their documentation. They take precedence over the HTTP status.
 */
const codes: Readonly<Record<string, ErrorCode>> = {
  insufficient_quota: ErrorCode.QuotaExceeded,
  billing_hard_limit_reached: ErrorCode.QuotaExceeded,
  billing_not_active: ErrorCode.QuotaExceeded,
  insufficient_balance: ErrorCode.QuotaExceeded,
  insufficient_credits: ErrorCode.QuotaExceeded,
  exceeded_current_quota_error: ErrorCode.QuotaExceeded,
  payment_required: ErrorCode.QuotaExceeded,
  rate_limit_exceeded: ErrorCode.RateLimited,
  rate_limit_reached_error: ErrorCode.RateLimited,
  rate_limit_error: ErrorCode.RateLimited,
  rate_limited: ErrorCode.RateLimited,
  too_many_requests: ErrorCode.RateLimited,
  context_length_exceeded: ErrorCode.ContextLengthExceeded,
  context_window_exceeded: ErrorCode.ContextLengthExceeded,
  exceed_context_size_error: ErrorCode.ContextLengthExceeded,
  invalid_api_key: ErrorCode.AuthenticationFailed,
  wrong_api_key: ErrorCode.AuthenticationFailed,
  invalid_authentication_error: ErrorCode.AuthenticationFailed,
  incorrect_api_key_error: ErrorCode.AuthenticationFailed,
  authentication_error: ErrorCode.AuthenticationFailed,
  permission_denied_error: ErrorCode.AuthenticationFailed,
  permission_denied: ErrorCode.AuthenticationFailed,
  model_not_found: ErrorCode.ModelNotFound,
  model_not_available: ErrorCode.ModelNotFound,
  model_decommissioned: ErrorCode.ModelNotFound,
  invalid_model: ErrorCode.ModelNotFound,
  deploymentnotfound: ErrorCode.ModelNotFound,
  resource_not_found_error: ErrorCode.ModelNotFound,
  content_filter: ErrorCode.ContentFiltered,
  content_policy_violation: ErrorCode.ContentFiltered,
  content_moderation: ErrorCode.ContentFiltered,
  moderation_blocked: ErrorCode.ContentFiltered,
  responsibleaipolicyviolation: ErrorCode.ContentFiltered,
  image_content_policy_violation: ErrorCode.ContentFiltered,
  invalid_prompt: ErrorCode.ContentFiltered,
  bio_policy: ErrorCode.ContentFiltered,
  cyber_policy: ErrorCode.ContentFiltered,
  misalignment_policy_violation: ErrorCode.ContentFiltered,
  server_error: ErrorCode.ProviderError,
  internal_server_error: ErrorCode.ProviderError,
  api_error: ErrorCode.ProviderError,
  engine_overloaded_error: ErrorCode.ProviderError,
  overloaded_error: ErrorCode.ProviderError,
  service_unavailable: ErrorCode.ProviderError,
  service_unavailable_error: ErrorCode.ProviderError,
  provider_overloaded: ErrorCode.ProviderError,
  vector_store_timeout: ErrorCode.ProviderError,
  request_timeout: ErrorCode.Timeout,
  timeout: ErrorCode.Timeout,
  // A general type: a more specific code in the same error takes precedence.
  invalid_request_error: ErrorCode.InvalidRequest,
}

/**
 * Some vendors send no error code for a too long prompt, a wrong key or filtered content; these are
 * recognised by the wording of the message.
 */
const contextWords =
  /maximum context length|context (length|window)|exceeds? the (available )?context|prompt is too long|maximum (prompt|allowed) (length|tokens)|too many tokens/i
const keyWords = /(incorrect|invalid) api key/i
const moderationWords = /flagged|moderation|content (policy|filter)/i

/** Reads an HTTP error of the OpenAI family. */
export function readOpenAIError({ status, headers, json, text }: ErrorResponse): VendorError {
  const requestId =
    headers.get('x-request-id') ?? headers.get('apim-request-id') ?? headers.get('cf-ray')
  const body = readErrorBody(json, status)
  const firstLine = text.trim().split('\n')[0]!.slice(0, 300)
  const message = body?.message ?? (firstLine || `HTTP ${status}`)
  return { message, ...body, requestId: requestId ?? undefined }
}

/**
 * Reads an error object in any known shape: `{ error: { … } }`, `{ error: 'text' }`, flat
 * `{ code, message }`, `{ detail: [ … ] }`. Returns undefined if there is no error in it.
 */
export function readErrorBody(
  json: JsonValue | undefined,
  status?: number,
): VendorError | undefined {
  const outer = Array.isArray(json) ? objectOf(json[0]) : objectOf(json)
  if (!outer) return undefined
  const inner = objectOf(outer['error'])
  const error = inner ?? outer
  const message = messageOf(error) ?? stringOf(outer['error']) ?? messageOf(outer)
  if (message === undefined && !inner) return undefined
  const vendorType = textOf(error['type']) ?? textOf(outer['error_type'])
  const metadata = objectOf(error['metadata'])
  const rawCode = error['code'] ?? outer['code']
  const vendorCode = textOf(rawCode) ?? (numberOf(rawCode) ?? undefined)?.toString()
  const words = [
    textOf(objectOf(error['innererror'])?.['code']),
    textOf(metadata?.['error_type']),
    vendorCode,
    vendorType,
  ]
  const said = message ?? `${vendorType ?? vendorCode ?? 'unknown error'}`
  const code = codeOf(words, said, numberOf(rawCode) ?? status)
  const raw = textOf(metadata?.['raw'])
  return {
    // OpenRouter's own message is "Provider returned error"; the upstream's message is in
    // `metadata.raw`.
    message: raw && !said.includes(raw) ? `${said}: ${raw.slice(0, 500)}` : said,
    code,
    vendorCode,
    vendorType,
  }
}

function codeOf(
  words: readonly (string | undefined)[],
  message: string,
  status: number | undefined,
): ErrorCode | undefined {
  const known = words.map((word) => {
    const key = word?.toLowerCase()
    return key !== undefined && Object.hasOwn(codes, key) ? codes[key] : undefined
  })
  const specific = known.find((code) => code && code !== ErrorCode.InvalidRequest)
  if (specific) return specific
  const isRequestError = status === undefined || status === 400 || status === 413 || status === 422
  if (isRequestError && contextWords.test(message)) return ErrorCode.ContextLengthExceeded
  if (isRequestError && keyWords.test(message)) return ErrorCode.AuthenticationFailed
  if (status === 403 && moderationWords.test(message)) return ErrorCode.ContentFiltered
  return (
    (status !== undefined && status >= 400 ? codeForStatus(status) : undefined) ??
    known.find((code) => code !== undefined)
  )
}

function messageOf(error: JsonObject): string | undefined {
  const message = error['message'] ?? error['detail'] ?? error['msg']
  if (typeof message === 'string') return message
  const details = Array.isArray(message) ? message : listOf(objectOf(message)?.['detail'])
  const lines = details.map((item) => {
    const at = listOf(objectOf(item)?.['loc']).join('.')
    const said = textOf(objectOf(item)?.['msg']) ?? JSON.stringify(item)
    return at ? `${at}: ${said}` : said
  })
  return lines.length > 0 ? lines.join('; ') : undefined
}

interface Words {
  readonly status: number
  readonly type: string
  readonly code: string | null
}

/** OpenAI's status, type and code for each of our codes, used by the server half. */
const words: Readonly<Record<ErrorCode, Words>> = {
  [ErrorCode.AuthenticationFailed]: {
    status: 401,
    type: 'invalid_request_error',
    code: 'invalid_api_key',
  },
  [ErrorCode.RateLimited]: { status: 429, type: 'requests', code: 'rate_limit_exceeded' },
  [ErrorCode.QuotaExceeded]: {
    status: 429,
    type: 'insufficient_quota',
    code: 'insufficient_quota',
  },
  [ErrorCode.ContextLengthExceeded]: {
    status: 400,
    type: 'invalid_request_error',
    code: 'context_length_exceeded',
  },
  [ErrorCode.ModelNotFound]: {
    status: 404,
    type: 'invalid_request_error',
    code: 'model_not_found',
  },
  [ErrorCode.InvalidRequest]: { status: 400, type: 'invalid_request_error', code: null },
  [ErrorCode.ContentFiltered]: {
    status: 400,
    type: 'invalid_request_error',
    code: 'content_filter',
  },
  [ErrorCode.InvalidResponse]: { status: 502, type: 'server_error', code: null },
  [ErrorCode.ProviderError]: { status: 500, type: 'server_error', code: 'server_error' },
  [ErrorCode.NetworkError]: { status: 502, type: 'server_error', code: null },
  [ErrorCode.Timeout]: { status: 504, type: 'timeout', code: 'timeout' },
  [ErrorCode.Cancelled]: { status: 499, type: 'server_error', code: 'cancelled' },
}

/** Writes the error body of both OpenAI formats. */
export function errorBody({ code, message, fields }: ServerError): JsonObject {
  const { type, code: word } = words[code]
  return { error: { message, type, param: null, code: word, ...fields } }
}

/** Returns the HTTP status and body of an error; Chat Completions and Responses use the same error format. */
export function encodeError(error: ServerError): {
  readonly status: number
  readonly body: JsonObject
} {
  return { status: error.statusCode ?? words[error.code].status, body: errorBody(error) }
}
