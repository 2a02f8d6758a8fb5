import { expect, test } from 'vitest'
import { isSecretHeader, secretsOf } from './redact.ts'

test.each([
  'Authorization',
  'X-API-Key',
  'Cookie',
  'x-goog-api-key',
  'X-MyToken',
  'Proxy-Authorization',
])('the header %s is a credential, however it is written', (name) => {
  expect(isSecretHeader(name)).toBe(true)
  expect(secretsOf(undefined, { [name]: 'Bearer abc-0123456789' })).toEqual([
    'Bearer abc-0123456789',
    'abc-0123456789',
  ])
})

test.each(['content-type', 'anthropic-version', 'user-agent', 'x-request-id'])(
  'the header %s is not',
  (name) => {
    expect(isSecretHeader(name)).toBe(false)
    expect(secretsOf('key', { [name]: 'value of a header' })).toEqual(['key'])
  },
)
