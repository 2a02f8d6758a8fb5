/**
 * Two keys in turn, and a retry that takes the next one. The vendor is a `fetch` of our own: it
 * refuses the first key as long as it is asked with it.
 *
 * Prints:
 *
 *     key-one → 429
 *     retry 1: RATE_LIMITED, wait 20 ms
 *     key-two → 200
 *     Hello from the second key.
 */

// #region program
import { ExponentialBackoff, llm, RoundRobinKeys, type Fetch } from '@skein/ai'
import groq from '@skein/ai/groq'

const fetch: Fetch = async (_url, init) => {
  const key = new Headers(init.headers).get('authorization')?.replace('Bearer ', '')
  const status = key === 'key-one' ? 429 : 200
  console.log(key, '→', status)
  if (status === 429) return new Response('{}', { status, headers: { 'retry-after-ms': '20' } })
  const message = { role: 'assistant', content: 'Hello from the second key.' }
  return Response.json({ choices: [{ index: 0, message, finish_reason: 'stop' }] })
}

const backoff = new ExponentialBackoff({ maxRetries: 3, baseDelay: 10 })
const model = llm({
  model: groq('llama-3.3-70b'),
  config: {
    fetch,
    apiKey: new RoundRobinKeys(['key-one', 'key-two']),
    retryStrategy: {
      onRetry(error, attempt) {
        const delay = backoff.onRetry(error, attempt)
        console.log(`retry ${attempt}: ${error.code}, wait ${delay} ms`)
        return delay
      },
    },
  },
})

const turn = await model.generate('Hello!')
console.log(turn.text)
// #endregion program
