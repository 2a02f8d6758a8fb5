import { expect, test } from 'vitest'
import { fitsRequest, isThisMachine } from './request-pattern.ts'

test.each([
  ['https://a.test/log', true],
  ['https://a.test/*', true],
  ['https://*.test/log', true],
  ['POST https://a.test/log', true],
  ['GET https://a.test/log', false],
  ['https://a.test', false],
  ['https://aXtest/log', false],
])('%s fits: %s', (pattern, isFit) => {
  expect(fitsRequest(pattern, { method: 'post', url: 'https://a.test/log' })).toBe(isFit)
})

test.each([
  ['localhost', true],
  ['api.localhost', true],
  ['127.0.0.1', true],
  ['127.9.9.9', true],
  ['::1', true],
  ['[::1]', true],
  ['::ffff:127.0.0.1', true],
  ['localhost.example.com', false],
  ['127.0.0.1.example.com', false],
  ['10.0.0.1', false],
])('%s is this machine: %s', (host, isOwn) => {
  expect(isThisMachine(host)).toBe(isOwn)
})
