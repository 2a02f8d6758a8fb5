/**
 * Tests code that calls vendors without a vendor: one script is played as OpenAI, Anthropic, Google and
 * Ollama, byte by byte, with a fault on the way; the traffic is recorded and replayed.
 *
 * Prints:
 *
 *     openai: Grüße! after 2 requests
 *     anthropic: Grüße! after 2 requests
 *     google: Grüße! after 2 requests
 *     ollama: Grüße! after 2 requests
 *     replayed: Grüße! without a server
 *     refused: messages[0]: the first message is of the user
 */

// #region program
import { LinearBackoff, llm } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { google } from '@skein/ai/google'
import { ollama } from '@skein/ai/ollama'
import { openai } from '@skein/ai/openai'
import {
  checkTranscript,
  memoryRecordings,
  recordFetch,
  replayFetch,
  says,
  vendorServer,
} from '@skein/ai/testing'

// #region models
const models = [openai('gpt-5'), anthropic('claude-x'), google('gemini-3-pro'), ollama('qwen3')]
// #endregion models
const retryStrategy = new LinearBackoff({ delay: 1 })
const store = memoryRecordings()

for (const model of models) {
  // #region fault
  // The first request meets a limit; then the answer comes one byte at a time.
  const vendor = vendorServer([says('Grüße!')], {
    faults: [{ kind: 'error', code: 'RATE_LIMITED', headers: { 'retry-after': '0.01' } }],
    chunkBytes: 1,
  })
  const fetch = recordFetch(store, { fetch: vendor.fetch })
  const config = { fetch, apiKey: 'sk-secret', retryStrategy }
  const turn = await llm({ model, config }).stream('Hello').turn
  // #endregion fault
  console.log(`${model.provider.name}: ${turn.text} after ${vendor.requests.length} requests`)
  await fetch.saved()
}

// The last recording holds no key, and needs no server.
const config = { fetch: replayFetch(store), apiKey: 'another', retryStrategy }
const replayed = await llm({ model: ollama('qwen3'), config }).stream('Hello').turn
console.log(`replayed: ${replayed.response.text} without a server`)

// What a vendor would refuse is known beforehand.
const [issue] = checkTranscript('anthropic-messages', {
  max_tokens: 100,
  messages: [{ role: 'assistant', content: 'Hello.' }],
})
console.log('refused:', issue?.message)
// #endregion program
