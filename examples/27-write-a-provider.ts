/**
 * Two ways to a provider of your own: a vendor page over a known format, and anything that gives
 * events. Tools, streaming, structure and middleware then work as with every other.
 *
 * Prints:
 *
 *     POST https://llm.example.com/v1/chat/completions with Bearer my-key
 *     Hello from the vendor.
 *     .olleH
 */

// #region program
import {
  createProvider,
  defineVendor,
  llm,
  type Fetch,
  type LLMRequest,
  type StreamEvent,
} from '@skein/ai'
import { zeroUsage } from '@skein/ai/engine'
import { chatDialect, openaiChat } from '@skein/ai/wires'

const capabilities = {
  streaming: true,
  tools: true,
  structuredOutput: false,
  imageInput: false,
  documentInput: false,
  videoInput: false,
  audioInput: false,
}

/** A vendor is a page: its address, its key, its format and where it departs from it. */
const example = defineVendor({
  name: 'example',
  baseUrl: 'https://llm.example.com/v1',
  keyVariables: ['EXAMPLE_API_KEY'],
  llm: { wire: openaiChat, dialect: chatDialect, capabilities },
})

const fetch: Fetch = async (url, { method, headers }) => {
  console.log(method, url, 'with', new Headers(headers).get('authorization'))
  const message = { role: 'assistant', content: 'Hello from the vendor.' }
  return Response.json({ choices: [{ index: 0, message, finish_reason: 'stop' }] })
}
const remote = llm({ model: example('any'), config: { fetch, apiKey: 'my-key' } })
console.log((await remote.generate('Hello.')).text)

/** A model without a vendor: it says everything backwards. */
async function answer({ messages }: LLMRequest): Promise<readonly StreamEvent[]> {
  const text = [...(messages.at(-1)?.text ?? '')].toReversed().join('')
  return [
    { type: 'message_start', index: 0, delta: { provider: 'backwards' } },
    { type: 'content_block_start', index: 0, delta: { block: 'text' } },
    { type: 'text_delta', index: 0, delta: { text } },
    { type: 'content_block_stop', index: 0, delta: {} },
    { type: 'message_stop', index: 0, delta: { stopReason: 'end_turn', usage: zeroUsage } },
  ]
}

const backwards = createProvider({
  name: 'backwards',
  llm: {
    capabilities,
    bind: ({ modelId }) => ({
      modelId,
      provider: 'backwards',
      capabilities,
      complete: answer,
      // One batch for each piece as it comes; here everything comes in one piece.
      async *stream(request) {
        yield await answer(request)
      },
    }),
  },
})
console.log((await llm({ model: backwards('v1') }).generate('Hello.')).text)
// #endregion program
