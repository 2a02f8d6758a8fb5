/** Servers that keep the connection open after the last event of a stream. */
import { llm, NoRetry, type ModelReference } from '@skein/ai'
import { openai } from '@skein/ai/openai'
import { xai } from '@skein/ai/xai'
import { expect, test } from 'vitest'
import { helloBody, stub, type Answer } from './support/stub.ts'
import { llmVendors } from './support/vendors.ts'

/** Answers as a vendor does, but the body never ends by itself. */
function open(): { answer: Answer; closed: () => boolean } {
  let isClosed = false
  const answer: Answer = ({ url, body }) => {
    const { type, text } = helloBody(url, body)
    const stream = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(text)),
      cancel: () => void (isClosed = true),
    })
    return new Response(stream, { headers: { 'content-type': type } })
  }
  return { answer, closed: () => isClosed }
}

const configOf = (answer: Answer) => ({
  apiKey: 'key-0123456789',
  fetch: stub(answer).fetch,
  retryStrategy: new NoRetry(),
})

/** Google's format has no last event: its streams end with the connection. */
const ending = llmVendors.filter(({ name }) => name !== 'google')
const models: [string, ModelReference][] = [
  ...ending.map(({ name, provider }): [string, ModelReference] => [name, provider('m')]),
  ['openai chat', openai('m', { api: 'chat' })],
  ['xai responses', xai('m', { api: 'responses' })],
]

test.each(models)('UPP-164 UPP-145 %s: the answer ends with its last event', async (_, model) => {
  const { answer, closed } = open()
  const stream = llm({ model, config: configOf(answer) }).stream('x')
  let text = ''
  for await (const event of stream) if (event.type === 'text_delta') text += event.delta.text
  expect(text).toBe('Hello')
  expect((await stream.turn).stopReason).toBe('end_turn')
  expect(closed()).toBe(true)
})
