import { expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '@skein/base'
import { googleGenerate } from './wire.ts'

// Bodies as the documentation describes them; none is recorded.
const target = { provider: 'google', modelId: 'm', dialect: {} }
const headers = { get: () => null }
const read = (json: JsonValue | undefined, text = '') =>
  googleGenerate.decodeError({ status: 400, json, text, headers }, target)
const rpc = (name: string, fields: JsonObject): JsonObject => ({
  '@type': `type.googleapis.com/google.rpc.${name}`,
  ...fields,
})

test.each([
  ['INVALID_ARGUMENT', 'bad field', 'INVALID_REQUEST'],
  ['INVALID_ARGUMENT', 'API key not valid. Please pass a valid API key.', 'AUTHENTICATION_FAILED'],
  [
    'INVALID_ARGUMENT',
    'The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).',
    'CONTEXT_LENGTH_EXCEEDED',
  ],
  ['FAILED_PRECONDITION', 'User location is not supported', 'INVALID_REQUEST'],
  ['UNAUTHENTICATED', 'who?', 'AUTHENTICATION_FAILED'],
  ['PERMISSION_DENIED', 'no', 'AUTHENTICATION_FAILED'],
  ['NOT_FOUND', 'models/none is not found', 'MODEL_NOT_FOUND'],
  ['RESOURCE_EXHAUSTED', 'slow down', 'RATE_LIMITED'],
  ['INTERNAL', 'oops', 'PROVIDER_ERROR'],
  ['UNAVAILABLE', 'overloaded', 'PROVIDER_ERROR'],
  ['DEADLINE_EXCEEDED', 'late', 'PROVIDER_ERROR'],
])('%s "%s" is %s, in a list too', (status, message, code) => {
  const body = { error: { code: 400, message, status } }
  const expected = { message, code, vendorType: status, vendorCode: '400' }
  expect(read(body)).toEqual(expected)
  expect(read([body])).toEqual(expected)
})

test('a quota per minute asks to wait, one per day does not come back', () => {
  const exhausted = (quotaId: string) => ({
    error: {
      code: 429,
      status: 'RESOURCE_EXHAUSTED',
      message: 'quota',
      details: [
        rpc('QuotaFailure', { violations: [{ quotaId }] }),
        rpc('RetryInfo', { retryDelay: '36.074824224s' }),
      ],
    },
  })
  expect(read(exhausted('GenerateRequestsPerMinutePerProject'))).toMatchObject({
    code: 'RATE_LIMITED',
    retryAfterMs: 36_075,
  })
  expect(read(exhausted('GenerateRequestsPerDayPerProjectPerModel-FreeTier'))).toMatchObject({
    code: 'QUOTA_EXCEEDED',
  })
})

test('the reason of an invalid key, and bodies that are not of the API', () => {
  const details = [rpc('ErrorInfo', { reason: 'API_KEY_INVALID' })]
  expect(read({ error: { code: 400, status: 'INVALID_ARGUMENT', message: 'x', details } })).toEqual(
    {
      message: 'x',
      code: 'AUTHENTICATION_FAILED',
      vendorType: 'INVALID_ARGUMENT',
      vendorCode: 'API_KEY_INVALID',
    },
  )
  expect(read(undefined, 'Not here')).toEqual({ message: 'Not here' })
  expect(read({ error: 'text' }, '{"error":"text"}')).toEqual({ message: '{"error":"text"}' })
})
