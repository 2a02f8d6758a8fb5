import { expect, test } from 'vitest'
import { decodeError as decodeGoogleError } from '../google-generate/error.ts'
import { decodeError } from './error.ts'
import { llm } from '../../llm.ts'
import { NoRetry } from '../../transport/retry.ts'
import { ollama } from '../../vendors/ollama.ts'
import { processorMs } from '../../../../../conformance/support/processor-time.ts'

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
  const start = processorMs()
  const error = 'model '.repeat(60_000)
  decodeError({ json: { error }, text: '', status: 500, headers: new Headers() })
  const message = 'token count '.repeat(30_000)
  const google = { error: { status: 'INVALID_ARGUMENT', message } }
  const decoded = decodeGoogleError({ json: google, text: '', status: 400, headers: new Headers() })
  expect(decoded.code).toBe('INVALID_REQUEST')
  expect(processorMs() - start).toBeLessThan(GENEROUS_MS)
})

test.each([
  ['model "m" not found', 'MODEL_NOT_FOUND'],
  ['model not loaded, try pulling it first', 'MODEL_NOT_FOUND'],
  ['input exceeds the context length', 'CONTEXT_LENGTH_EXCEEDED'],
  ['the context window is full', 'CONTEXT_LENGTH_EXCEEDED'],
  ['input exceeds maximum context size', 'CONTEXT_LENGTH_EXCEEDED'],
  ['prompt is too long', 'CONTEXT_LENGTH_EXCEEDED'],
  ['Unauthorized', 'AUTHENTICATION_FAILED'],
  ['"m" does not support tools', 'INVALID_REQUEST'],
  ['invalid think value', 'INVALID_REQUEST'],
  ['llama runner process has terminated', 'PROVIDER_ERROR'],
])('UPP-144 "%s" is %s, with a status and in a stream', async (message, code) => {
  const answers = [
    () => Response.json({ error: message }, { status: 500 }),
    () => new Response(`${JSON.stringify({ error: message })}\n`),
    () => new Response(`${JSON.stringify({ error: { message } })}\n`),
  ]
  for (const answer of answers) {
    const config = { fetch: async () => answer(), retryStrategy: new NoRetry() }
    const model = llm({ model: ollama('m'), config })
    await expect(model.stream('x').turn).rejects.toMatchObject({ code, message })
  }
})
