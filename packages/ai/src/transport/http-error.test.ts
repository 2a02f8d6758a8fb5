import { expect, test } from 'vitest'
import { httpError } from './http-error.ts'
import { processorMs } from '../../../../conformance/support/processor-time.ts'

const options = {
  context: { provider: 'acme', modality: 'llm' },
  decodeError: () => ({ message: '' }),
  keyVariables: [],
  now: 0,
} as const

/** Far above what linear work needs, far below what quadratic work takes on the same text. */
const GENEROUS_MS = 1_000

function msOf(work: () => void): number {
  const start = processorMs()
  work()
  return processorMs() - start
}

test('the title of a web page is part of the message', () => {
  const text = '<html><head><TITLE lang="en">502 Bad\nGateway</TITLE>'
  const { message } = httpError({ status: 502, headers: new Headers(), text }, options)
  expect(message).toBe('acme answered HTTP 502 with a web page titled "502 Bad\nGateway".')
})

test('a web page of unfinished titles is read in linear time', () => {
  const text = `<html>${'<title'.repeat(40_000)}`
  const ms = msOf(() => {
    httpError({ status: 500, headers: new Headers(), text }, options)
  })
  expect(ms).toBeLessThan(GENEROUS_MS)
})

test.each([
  ['6m0s', 360_000],
  [' 1h2m3.5s ', 3_723_500],
  ['150ms', 150],
])('the reset time %j of a limit is the wait', (reset, ms) => {
  const headers = new Headers({ 'x-ratelimit-remaining-requests': '0' })
  headers.set('x-ratelimit-reset-requests', reset)
  expect(httpError({ status: 429, headers, text: '' }, options).retryAfterMs).toBe(ms)
})
