import { expect, test } from 'vitest'
import type { JsonValue } from '@skein/base'
import { encodeError } from './server-error.ts'
import { anthropicMessages } from './wire.ts'

// Bodies as the documentation and the SDK's types describe them; none is recorded.
const target = { provider: 'anthropic', modelId: 'm', dialect: { maxTokens: 1 } }
const read = (status: number, json: JsonValue | undefined, text = '', id?: string) =>
  anthropicMessages.decodeError(
    {
      status,
      json,
      text,
      headers: { get: (name) => (name === 'request-id' ? (id ?? null) : null) },
    },
    target,
  )

test.each([
  [400, 'invalid_request_error', 'max_tokens: required', 'INVALID_REQUEST'],
  [400, 'invalid_request_error', 'prompt is too long: 210000 tokens', 'CONTEXT_LENGTH_EXCEEDED'],
  [400, 'invalid_request_error', 'Your credit balance is too low to access', 'QUOTA_EXCEEDED'],
  [400, 'invalid_request_error', 'Output blocked by content filtering policy', 'CONTENT_FILTERED'],
  [401, 'authentication_error', 'invalid x-api-key', 'AUTHENTICATION_FAILED'],
  [402, 'billing_error', 'no money', 'QUOTA_EXCEEDED'],
  [403, 'permission_error', 'not yours', 'AUTHENTICATION_FAILED'],
  [404, 'not_found_error', 'model: claude-none', 'MODEL_NOT_FOUND'],
  [413, 'request_too_large', 'bytes', 'INVALID_REQUEST'],
  [429, 'rate_limit_error', 'slow down', 'RATE_LIMITED'],
  [500, 'api_error', 'oops', 'PROVIDER_ERROR'],
  [504, 'timeout_error', 'late', 'PROVIDER_ERROR'],
  [529, 'overloaded_error', 'Overloaded', 'PROVIDER_ERROR'],
])('%i %s "%s" is %s', (status, type, message, code) => {
  const body = { type: 'error', error: { type, message }, request_id: 'req_1' }
  expect(read(status, body)).toEqual({ message, code, vendorType: type, requestId: 'req_1' })
})

test('a spend limit is a quota, not a rate', () => {
  const details = { error_code: 'enforced_spend_limit_reached' }
  const error = { type: 'rate_limit_error', message: 'limit', details }
  expect(read(429, { type: 'error', error })).toMatchObject({
    code: 'QUOTA_EXCEEDED',
    vendorCode: 'enforced_spend_limit_reached',
  })
})

test('an unknown type leaves the code to the status; the header has the request id', () => {
  const error = read(409, { error: { type: 'conflict_error', message: 'busy' } }, '', 'req_h')
  expect(error).toEqual({ message: 'busy', vendorType: 'conflict_error', requestId: 'req_h' })
  expect(read(502, undefined, 'Bad gateway')).toEqual({ message: 'Bad gateway' })
  expect(read(502, undefined, '')).toEqual({ message: 'HTTP 502' })
})

test('UPP-036 a body without an error object: its message, else the beginning of the text, with the request id', () => {
  expect(read(502, { message: 'from a proxy' }, '{}', 'req_h')).toEqual({
    message: 'from a proxy',
    requestId: 'req_h',
  })
  expect(read(502, undefined, `  ${'x'.repeat(600)}`)).toEqual({ message: 'x'.repeat(500) })
  expect(read(500, { error: { type: 'api_error' } })).toMatchObject({ message: 'api_error' })
  expect(read(500, { error: {} })).toEqual({ message: 'The vendor gave no reason.' })
})

test('UPP-036 only an invalid request is read by its words, and only known types have a code', () => {
  const other = { type: 'api_error', message: 'prompt is too long' }
  expect(read(500, { error: other }).code).toBe('PROVIDER_ERROR')
  expect(read(500, { error: { type: 'constructor', message: 'x' } }).code).toBeUndefined()
  expect(read(500, { error: { message: 'x' } }).code).toBeUndefined()
})

test.each([
  ['AUTHENTICATION_FAILED', 401, 'authentication_error', 'no'],
  ['RATE_LIMITED', 429, 'rate_limit_error', 'no'],
  ['QUOTA_EXCEEDED', 402, 'billing_error', 'no'],
  ['CONTEXT_LENGTH_EXCEEDED', 400, 'invalid_request_error', 'prompt is too long: no'],
  ['MODEL_NOT_FOUND', 404, 'not_found_error', 'no'],
  ['INVALID_REQUEST', 400, 'invalid_request_error', 'no'],
  ['CONTENT_FILTERED', 400, 'invalid_request_error', 'blocked by content filtering policy: no'],
  ['INVALID_RESPONSE', 502, 'api_error', 'no'],
  ['PROVIDER_ERROR', 500, 'api_error', 'no'],
  ['NETWORK_ERROR', 502, 'api_error', 'no'],
  ['TIMEOUT', 504, 'timeout_error', 'no'],
  ['CANCELLED', 499, 'api_error', 'no'],
] as const)('a server writes %s as %i %s "%s"', (code, status, type, message) => {
  const written = encodeError({ code, message: 'no' })
  expect(written).toEqual({ status, body: { type: 'error', error: { type, message } } })
  expect(encodeError({ code, message }).body).toEqual(written.body)
})

test('a server writes an overload with its status, and the fields of an error', () => {
  const error = { code: 'PROVIDER_ERROR', message: 'busy', statusCode: 529 } as const
  expect(encodeError({ ...error, fields: { retry: true } })).toEqual({
    status: 529,
    body: { type: 'error', error: { type: 'overloaded_error', message: 'busy', retry: true } },
  })
})
