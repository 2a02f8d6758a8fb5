import { type JsonObject, type JsonValue } from '@skein/base'
import { ErrorCode } from '../contract/error.ts'
import { codeForStatus, type ErrorResponse, type VendorError } from '../contract/vendor-error.ts'
import { listOf, numberOf, objectOf, stringOf, textOf } from './read-json.ts'

/**
 * Error codes, error types and OpenRouter's `metadata.error_type` of OpenAI and of vendors that use
 * its format, from their documentation. They take precedence over the HTTP status.
 */
const codes: readonly (readonly [code: ErrorCode, words: string])[] = [
  [
    ErrorCode.QuotaExceeded,
    `insufficient_quota billing_hard_limit_reached billing_not_active insufficient_balance
    insufficient_credits exceeded_current_quota_error payment_required`,
  ],
  [
    ErrorCode.RateLimited,
    `rate_limit_exceeded rate_limit_reached_error rate_limit_error rate_limited
    too_many_requests`,
  ],
  [
    ErrorCode.ContextLengthExceeded,
    'context_length_exceeded context_window_exceeded exceed_context_size_error',
  ],
  [
    ErrorCode.AuthenticationFailed,
    `invalid_api_key wrong_api_key invalid_authentication_error incorrect_api_key_error
    authentication_error permission_denied_error permission_denied`,
  ],
  [
    ErrorCode.ModelNotFound,
    `model_not_found model_not_available model_decommissioned invalid_model
    deploymentnotfound resource_not_found_error`,
  ],
  [
    ErrorCode.ContentFiltered,
    `content_filter content_policy_violation content_moderation moderation_blocked
    responsibleaipolicyviolation image_content_policy_violation invalid_prompt bio_policy
    cyber_policy misalignment_policy_violation`,
  ],
  [
    ErrorCode.ProviderError,
    `server_error internal_server_error api_error engine_overloaded_error overloaded_error
    service_unavailable service_unavailable_error provider_overloaded vector_store_timeout`,
  ],
  [ErrorCode.Timeout, 'request_timeout timeout'],
  // A general type: a more specific code in the same error takes precedence.
  [ErrorCode.InvalidRequest, 'invalid_request_error'],
]

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
  const vendorCode = textOf(rawCode) ?? numberOf(rawCode)?.toString()
  const words = [
    textOf(objectOf(error['innererror'])?.['code']),
    textOf(metadata?.['error_type']),
    vendorCode,
    vendorType,
  ]
  const text = message ?? vendorType ?? vendorCode ?? 'unknown error'
  const code = codeOf(words, text, numberOf(rawCode) ?? status)
  const raw = textOf(metadata?.['raw'])
  return {
    // OpenRouter's own message is "Provider returned error"; the upstream's message is in
    // `metadata.raw`.
    message: raw && !text.includes(raw) ? `${text}: ${raw.slice(0, 500)}` : text,
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
  const matches = words.map((word) => {
    const key = word?.toLowerCase() ?? ''
    return codes.find(([, names]) => names.split(/\s+/).includes(key))?.[0]
  })
  const specific = matches.find((code) => code && code !== ErrorCode.InvalidRequest)
  if (specific) return specific
  const isRequestError = status === undefined || status === 400 || status === 413 || status === 422
  if (isRequestError && contextWords.test(message)) return ErrorCode.ContextLengthExceeded
  if (isRequestError && keyWords.test(message)) return ErrorCode.AuthenticationFailed
  if (status === 403 && moderationWords.test(message)) return ErrorCode.ContentFiltered
  return (
    (status !== undefined && status >= 400 ? codeForStatus(status) : undefined) ??
    matches.find((code) => code !== undefined)
  )
}

function messageOf(error: JsonObject): string | undefined {
  const message = error['message'] ?? error['detail'] ?? error['msg']
  if (typeof message === 'string') return message
  const details = Array.isArray(message) ? message : listOf(objectOf(message)?.['detail'])
  const lines = details.map((item) => {
    const at = listOf(objectOf(item)?.['loc']).join('.')
    const text = textOf(objectOf(item)?.['msg']) ?? JSON.stringify(item)
    return at ? `${at}: ${text}` : text
  })
  return lines.length > 0 ? lines.join('; ') : undefined
}
