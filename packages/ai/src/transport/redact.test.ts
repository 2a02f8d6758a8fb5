import { describe, expect, test } from 'vitest'
import { isPublicAddress } from './endpoint.ts'
import { UPPError, type UPPErrorOptions } from '../contract/error.ts'
import { redactUPPError } from './redact.ts'
import { isSecretHeader, secretsOf } from './config-secrets.ts'
import type { Turn } from '../contract/turn.ts'

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

describe('UPP-138 which addresses of an answer may be fetched', () => {
  const isPublic = (host: string): boolean => isPublicAddress(new URL(`https://${host}`).hostname)

  test.each([
    ['0.0.0.1', '1.0.0.1'],
    ['10.255.0.1', '11.0.0.1'],
    ['127.1.2.3', '128.0.0.1'],
    ['100.64.0.1', '100.63.255.1'],
    ['100.127.0.1', '100.128.0.1'],
    ['169.254.0.1', '169.253.0.1'],
    ['169.254.169.254', '8.254.0.1'],
    ['172.16.0.1', '172.15.0.1'],
    ['172.31.0.1', '172.32.0.1'],
    ['192.168.0.1', '192.167.0.1'],
    ['192.0.0.1', '192.0.1.1'],
    ['192.0.2.1', '192.1.2.1'],
    ['198.18.0.1', '198.17.0.1'],
    ['198.19.0.1', '198.20.0.1'],
    ['198.51.100.1', '198.51.101.1'],
    ['203.0.113.1', '203.0.112.1'],
    ['224.0.0.1', '223.255.0.1'],
    ['255.255.255.255', '203.1.113.1'],
    ['[::1]', '[2606:4700::1]'],
    ['[fe80::1]', '[3ffe::1]'],
    ['[3fff::1]', '[3fff:1000::1]'],
    ['[2001:1ff::1]', '[2001:200::1]'],
    ['192.88.99.1', '192.88.98.1'],
    ['[2001:db8::1]', '[2001:4860::1]'],
    ['[2002:a00:1::1]', '[2003::1]'],
    ['[64:ff9b::a00:1]', '[2a00::1]'],
    ['localhost', 'localhost.example'],
    ['db.internal', 'internal.example'],
    ['printer.local.', 'example.com.'],
    ['a.lan', 'a.language'],
    ['a.home', 'a.homes'],
    ['a.corp', 'a.corp.example'],
    ['a.intranet', 'a.net'],
  ])('not %s, but %s', (inside, outside) => {
    expect([isPublic(inside), isPublic(outside)]).toEqual([false, true])
  })
})

describe('an error that holds a secret', () => {
  const secret = 'sk-0123456789'
  const text = (name: string): string => `${name} ${secret}`
  const options: UPPErrorOptions = {
    code: 'INVALID_RESPONSE',
    provider: 'p',
    modality: 'image',
    statusCode: 418,
    hint: text('hint'),
    vendorCode: text('code'),
    vendorType: text('type'),
    requestId: text('id'),
    retryAfterMs: 7,
    shouldRetry: false,
    rateLimit: { 'x-ratelimit': text('limit') },
    body: text('body'),
    issues: [{ pointer: '/a', message: 'wrong' }],
    cause: new Error(text('cause'), {
      cause: new TypeError(text('deep'), { cause: text('deepest') }),
    }),
  }

  test('UPP-031 UPP-035 UPP-038 keeps every field, its turn and its causes, and the secret nowhere', () => {
    const error = new UPPError(text('message'), options)
    const turn = { cycles: 1 } as Turn
    error.turn = turn
    const copy = redactUPPError(error, [secret])
    const clean = (name: string): string => `${name} [redacted]`
    expect({ ...copy }).toEqual({
      ...options,
      name: 'UPPError',
      hint: clean('hint'),
      vendorCode: clean('code'),
      vendorType: clean('type'),
      requestId: clean('id'),
      rateLimit: { 'x-ratelimit': clean('limit') },
      body: clean('body'),
      cause: undefined,
    })
    expect([copy.message, copy.turn]).toEqual([clean('message'), turn])
    const cause = copy.cause as Error
    const deep = cause.cause as Error
    expect([cause.message, deep.message, deep.cause]).toEqual([clean('cause'), clean('deep'), clean('deepest')]) // prettier-ignore
    expect(deep.name).toBe('TypeError')
    expect([copy.stack, cause.stack, deep.stack].join()).not.toContain(secret)
  })

  test('UPP-031 one without a secret is the same object; facts that it lacks are added to a copy', () => {
    const error = new UPPError('message', {
      ...options,
      requestId: undefined,
      rateLimit: undefined,
    })
    error.turn = { cycles: 2 } as Turn
    expect(redactUPPError(error, ['another-secret'])).toBe(error)
    const facts = { requestId: 'r', rateLimit: { a: 'b' }, retryAfterMs: 9 }
    const copy = redactUPPError(error, [], facts)
    expect({ ...copy }).toEqual({ ...error, requestId: 'r', rateLimit: { a: 'b' } })
    expect([copy.turn, copy.cause]).toEqual([error.turn, error.cause])
  })
})
