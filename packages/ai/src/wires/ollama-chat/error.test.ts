import { expect, test } from 'vitest'
import { decodeError as decodeGoogleError } from '../google-generate/error.ts'
import { decodeError } from './error.ts'

/** Far above what linear work needs, far below what quadratic work takes on the same text. */
const GENEROUS_MS = 1_000

test.each([
  ['model "x" not found, try pulling it first', 'MODEL_NOT_FOUND'],
  ['Model x:7b Not Found', 'MODEL_NOT_FOUND'],
  ['not found: model ', undefined],
])('%j has the code %s', (error, code) => {
  expect(decodeError({ json: { error }, text: '', status: 404, headers: new Headers() }).code).toBe(
    code,
  )
})

test('an error that repeats the beginning of a known one is read in linear time', () => {
  const start = performance.now()
  const error = 'model '.repeat(60_000)
  decodeError({ json: { error }, text: '', status: 500, headers: new Headers() })
  const message = 'token count '.repeat(30_000)
  const google = { error: { status: 'INVALID_ARGUMENT', message } }
  const decoded = decodeGoogleError({ json: google, text: '', status: 400, headers: new Headers() })
  expect(decoded.code).toBe('INVALID_REQUEST')
  expect(performance.now() - start).toBeLessThan(GENEROUS_MS)
})
