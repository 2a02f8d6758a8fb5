import { manualClock } from '@skein/base'
import { expect, test } from 'vitest'
import { fileHeaders } from '../../src/operations/files.ts'
import { findEndpoint } from '../../src/http/endpoint-operations.ts'
import { isLoopback, RequestGuard } from '../../src/http/guard.ts'
import { TokenBuckets } from '../../src/limits/token-buckets.ts'
import type { EndpointDefinition } from '@skein/runtime'

const guard = new RequestGuard({ cors: { origins: ['https://app.example'] }, maxUrlLength: 200 })

function codeOf(run: () => void): string {
  try {
    run()
    return 'let in'
  } catch (error) {
    return (error as { code: string }).code
  }
}

test.each([
  ['http://localhost:4111/threads', {}, 'let in'],
  ['http://127.0.0.1/threads', {}, 'let in'],
  ['http://[::1]:80/threads', {}, 'let in'],
  ['http://evil.example/threads', {}, 'HOST_NOT_ALLOWED'],
  ['http://localhost/threads', { host: 'evil.example' }, 'HOST_NOT_ALLOWED'],
  ['http://evil.example/threads', { host: 'localhost' }, 'HOST_NOT_ALLOWED'],
  ['http://localhost.evil.example/', {}, 'HOST_NOT_ALLOWED'],
  ['http://localhost:4111/', { origin: 'http://localhost:4111' }, 'let in'],
  ['http://localhost:4111/', { origin: 'http://localhost:4112' }, 'ORIGIN_NOT_ALLOWED'],
  ['http://localhost:4111/', { origin: 'null' }, 'ORIGIN_NOT_ALLOWED'],
  ['http://localhost:4111/', { origin: 'https://app.example' }, 'let in'],
  ['http://localhost:4111/', { origin: 'https://app.example.evil' }, 'ORIGIN_NOT_ALLOWED'],
  [`http://localhost/${'a'.repeat(200)}`, {}, 'URL_TOO_LONG'],
  // An image, a script or a frame of another page has no origin.
  ...(
    [
      ['cross-site', 'no-cors', 'image', 'ORIGIN_NOT_ALLOWED'],
      ['same-site', 'no-cors', 'script', 'ORIGIN_NOT_ALLOWED'],
      ['cross-site', 'no-cors', 'empty', 'ORIGIN_NOT_ALLOWED'],
      ['cross-site', 'navigate', 'iframe', 'ORIGIN_NOT_ALLOWED'],
      ['cross-site', 'navigate', 'document', 'let in'],
      ['same-origin', 'no-cors', 'image', 'let in'],
      ['none', 'navigate', 'document', 'let in'],
    ] as const
  ).map(([site, mode, dest, expected]): [string, Record<string, string>, string] => [
    'http://localhost/',
    { 'sec-fetch-site': site, 'sec-fetch-mode': mode, 'sec-fetch-dest': dest },
    expected,
  ]),
])('%s with %j: %s', (url, headers, expected) => {
  expect(codeOf(() => guard.check(new Request(url, { headers })))).toBe(expected)
})

test('names and addresses of this machine are told from others', () => {
  const names = ['localhost', '127.0.0.1', '127.9.9.9', '::1', '[::1]', 'LOCALHOST']
  expect(names.filter((name) => !isLoopback(name))).toEqual([])
  const others = ['0.0.0.0', '::', '10.0.0.1', 'localhost.evil', '127.0.0.1.nip.io', '1270.0.0.1']
  expect(others.filter(isLoopback)).toEqual([])
})

test('a name or type of a stored file adds no header and runs as no page', () => {
  const stat = { path: 'a/x"\r\nset-cookie: a=b\r\n.html', sizeBytes: 1, hash: 'ff', writtenAt: '' }
  const headers = new Headers(fileHeaders({ ...stat, mediaType: 'text/html\r\nx-evil: 1' }))
  expect(headers.get('content-type')).toBe('application/octet-stream')
  expect(headers.get('x-evil')).toBeNull()
  expect(headers.get('set-cookie')).toBeNull()
  expect(headers.get('content-disposition')).toMatch(
    /^attachment; filename="[\w.-]+"; filename\*=UTF-8''[\w.%-]+$/,
  )
  expect(fileHeaders({ ...stat, mediaType: 'image/png' })['content-disposition']).toMatch(/^inline/)
  for (const type of ['text/html', 'image/svg+xml', 'application/xhtml+xml', 'text/javascript'])
    expect(fileHeaders({ ...stat, mediaType: type })['content-disposition']).toMatch(/^attachment/)
  expect(
    () => new Headers(fileHeaders({ ...stat, path: '\ud800.txt', mediaType: 'text/plain' })),
  ).not.toThrow()
})

test('a bucket empties, says how long to wait, refills, and is forgotten when there are too many', () => {
  const clock = manualClock()
  const buckets = new TokenBuckets({ perMinute: 2, clock, maxAccounts: 3 })
  expect([buckets.take('a'), buckets.take('a'), buckets.take('a')]).toEqual([0, 0, 30_000])
  clock.advance(29_999)
  expect(buckets.take('a')).toBeGreaterThan(0)
  clock.advance(1)
  expect([buckets.take('a'), buckets.take('b')]).toEqual([0, 0])
  for (let i = 0; i < 100; i++) buckets.take(`x${i}`)
  expect(buckets.size).toBe(3)
})

test('fixed segments of an endpoint win over names, and names over the rest', () => {
  const endpoint = (path: string): EndpointDefinition => ({
    kind: 'endpoint',
    path,
    method: 'GET',
    execute: () => new Response(),
  })
  const all = ['[*]', 'orders/[*]', 'orders/[id]', 'orders/new', '[kind]/new'].map(endpoint)
  const found = (path: string): unknown => {
    const match = findEndpoint(all, 'GET', path)
    return match && [match.endpoint.path, match.params]
  }
  expect(found('orders/new')).toEqual(['orders/new', {}])
  expect(found('orders/7')).toEqual(['orders/[id]', { id: '7' }])
  expect(found('orders/7/lines')).toEqual(['orders/[*]', { '*': '7/lines' }])
  expect(found('customers/new')).toEqual(['[kind]/new', { kind: 'customers' }])
  expect(found('customers/7')).toEqual(['[*]', { '*': 'customers/7' }])
  expect(findEndpoint(all, 'POST', 'orders/new')).toBeUndefined()
  expect(findEndpoint(all.toReversed(), 'GET', 'orders/new')?.endpoint.path).toBe('orders/new')
})
