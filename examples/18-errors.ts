/**
 * What a failed call tells: a code to switch on, who failed, what to do, how long to wait; and
 * never the key, even if the vendor repeats it.
 *
 * Prints:
 *
 *     AUTHENTICATION_FAILED invalid x-api-key: [redacted]
 *       anthropic llm HTTP 401, request req_7
 *       Check the key in config.apiKey or ANTHROPIC_API_KEY and what it may use.
 *     RATE_LIMITED slow down
 *       anthropic llm HTTP 429, request req_8
 *       wait 1500 ms
 *     CANCELLED The call was cancelled.
 *       anthropic llm
 */

// #region program
import { isUPPError, llm, NoRetry, type Fetch } from '@skein/ai'
import anthropic from '@skein/ai/anthropic'

const key = 'sk-ant-very-secret'
let requests = 0

const fetch: Fetch = async () => {
  requests += 1
  if (requests === 1) {
    return failure(401, 'authentication_error', `invalid x-api-key: ${key}`, {
      'request-id': 'req_7',
    })
  }
  if (requests === 2) {
    const headers = { 'request-id': 'req_8', 'retry-after': '1.5' }
    return failure(429, 'rate_limit_error', 'slow down', headers)
  }
  return new Promise(() => {}) // never answers
}

function failure(status: number, type: string, message: string, headers: HeadersInit): Response {
  return Response.json({ type: 'error', error: { type, message } }, { status, headers })
}

const controller = new AbortController()
const model = llm({
  model: anthropic('claude-sonnet-4-5'),
  config: { apiKey: key, fetch, retryStrategy: new NoRetry() },
  signal: controller.signal,
})

for (let call = 0; call < 3; call++) {
  if (call === 2) setTimeout(() => controller.abort(), 10)
  try {
    await model.generate('Hello!')
  } catch (error) {
    if (!isUPPError(error)) throw error
    const { code, message, provider, modality, statusCode, requestId, retryAfterMs, hint } = error
    console.log(code, message)
    const status = statusCode === undefined ? '' : ` HTTP ${statusCode}, request ${requestId}`
    console.log(`  ${provider} ${modality}${status}`)
    if (hint !== undefined) console.log(`  ${hint}`)
    if (retryAfterMs !== undefined) console.log(`  wait ${retryAfterMs} ms`)
  }
}
// #endregion program
