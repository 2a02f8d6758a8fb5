import type { JsonObject } from '@skein/base'
import { llm, NoRetry, type AssistantMessage, type StreamEvent, type Turn } from '@skein/ai'
import { calls, emits, reasons, says, scripted } from '@skein/ai/testing'
import { describe, expect, test } from 'vitest'
import { png } from './support/stub.ts'
import { vendors } from './support/vendors.ts'

const providers = new Map(vendors.map(({ name, provider }) => [name, provider]))

async function collect(stream: AsyncIterable<StreamEvent>): Promise<StreamEvent[]> {
  const events: StreamEvent[] = []
  for await (const event of stream) events.push(event)
  return events
}

/** Checks the grammar of one message: start, blocks that are opened once and closed once, stop. */
function checkGrammar(events: readonly StreamEvent[]): void {
  expect(events[0]?.type).toBe('message_start')
  expect(events.at(-1)?.type).toBe('message_stop')
  const open = new Set<number>()
  let next = 0
  for (const { type, index } of events.slice(1, -1)) {
    if (type === 'content_block_start') {
      expect(index).toBe(next++)
      open.add(index)
    } else if (type === 'content_block_stop') expect(open.delete(index), `stop ${index}`).toBe(true)
    else expect(open.has(index), `${type} of ${index}`).toBe(true)
  }
  expect([...open]).toEqual([])
}

const sse = (frames: readonly JsonObject[]): string =>
  frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('')

interface Case {
  readonly vendor: string
  readonly frames: readonly JsonObject[]
  /** The same answer in one piece, where the vendor has one. */
  readonly whole?: JsonObject
  readonly content: AssistantMessage['content']
  readonly calls?: readonly JsonObject[]
}

const chunk = (delta: JsonObject, finish_reason: string | null = null): JsonObject => ({
  id: 'c',
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
})
const chat = (message: JsonObject): JsonObject => ({
  id: 'c',
  model: 'm',
  choices: [{ index: 0, message, finish_reason: 'stop' }],
})
const message = { type: 'message', id: 'm1', role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'Hi', annotations: [] }] } // prettier-ignore
const thought = { type: 'reasoning', id: 'r1', summary: [], content: [{ type: 'reasoning_text', text: 'hm' }] } // prettier-ignore
const called = { type: 'function_call', id: 'f1', call_id: 'c1', name: 't', arguments: '{"a":1}', status: 'completed' } // prettier-ignore
const added = (output_index: number, item: JsonObject): JsonObject => ({
  type: 'response.output_item.added',
  output_index,
  item,
})
const done = (output_index: number, item: JsonObject): JsonObject => ({
  type: 'response.output_item.done',
  output_index,
  item,
})
const completed = (...output: JsonObject[]): JsonObject => ({
  type: 'response.completed',
  response: { id: 'x', status: 'completed', output },
})
const thinking = (...texts: string[]): JsonObject => ({
  type: 'thinking',
  thinking: texts.map((text) => ({ type: 'text', text })),
})
const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }
const data = Uint8Array.from(Buffer.from(png, 'base64'))
const image = { type: 'image', source: { type: 'bytes', data }, mimeType: 'image/png' } as const
const signed = { text: 'hm', thought: true, thoughtSignature: 's' }
const gemini = (...parts: JsonObject[]): JsonObject => ({
  candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
})

const cases: Record<string, Case> = {
  'Responses: an item that the vendor never closes': {
    vendor: 'openai',
    frames: [added(0, message), done(0, message), added(1, thought), completed(message)],
    content: [
      { type: 'text', text: 'Hi' },
      { type: 'reasoning', text: 'hm' },
    ],
  },
  'Responses: audio without a transcript': {
    vendor: 'openai',
    frames: [{ type: 'response.audio.delta', delta: 'AQI=' }, completed()],
    content: [{ type: 'audio', data: Uint8Array.of(1, 2), mimeType: 'audio/pcm' }],
  },
  'Responses: the text of a reasoning without a summary': {
    vendor: 'openai',
    frames: [
      added(0, { type: 'reasoning', id: 'r1', summary: [] }),
      { type: 'response.reasoning_text.delta', output_index: 0, content_index: 0, delta: 'hm' },
      done(0, thought),
      added(1, message),
      done(1, message),
      completed(thought, message),
    ],
    whole: { id: 'x', status: 'completed', output: [thought, message] },
    content: [
      { type: 'reasoning', text: 'hm' },
      { type: 'text', text: 'Hi' },
    ],
  },
  'Responses: text and arguments of which only the beginning was streamed': {
    vendor: 'openai',
    frames: [
      added(0, { ...message, content: [] }),
      { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'H' },
      done(0, message),
      added(1, { ...called, arguments: '' }),
      { type: 'response.function_call_arguments.delta', output_index: 1, delta: '{"a":' },
      done(1, called),
      completed(message, called),
    ],
    whole: { id: 'x', status: 'completed', output: [message, called] },
    content: [{ type: 'text', text: 'Hi' }],
    calls: [{ a: 1 }],
  },
  'Responses: interleaved items that have ids and no positions': {
    vendor: 'openai',
    frames: [
      { type: 'response.output_item.added', item: { type: 'message', id: 'm1' } },
      { type: 'response.output_item.added', item: { type: 'message', id: 'm2' } },
      { type: 'response.output_text.delta', item_id: 'm1', content_index: 0, delta: 'H' },
      { type: 'response.output_text.delta', item_id: 'm2', content_index: 0, delta: 'Y' },
      { type: 'response.output_text.delta', item_id: 'm1', content_index: 0, delta: 'i' },
      { type: 'response.output_text.delta', item_id: 'm2', content_index: 0, delta: 'o' },
      completed(),
    ],
    content: [
      { type: 'text', text: 'Hi' },
      { type: 'text', text: 'Yo' },
    ],
  },
  'Chat: reasoning details in pieces, the signature last (OpenRouter)': {
    vendor: 'openrouter',
    frames: [
      chunk({ reasoning: 'h', reasoning_details: [{ type: 'reasoning.text', text: 'h' }] }),
      chunk({ reasoning: 'm', reasoning_details: [{ type: 'reasoning.text', text: 'm' }] }),
      chunk({ reasoning_details: [{ type: 'reasoning.text', signature: 's' }] }),
      chunk({ content: 'Hi' }, 'stop'),
    ],
    whole: chat({
      reasoning: 'hm',
      reasoning_details: [{ type: 'reasoning.text', text: 'hm', signature: 's' }],
      content: 'Hi',
    }),
    content: [
      { type: 'reasoning', text: 'hm' },
      { type: 'text', text: 'Hi' },
    ],
  },
  'Chat: several thoughts in one part (Mistral)': {
    vendor: 'mistral',
    frames: [
      chunk({ content: [thinking('a', 'b')] }),
      chunk({ content: [thinking('c'), { type: 'text', text: 'Hi' }] }, 'stop'),
    ],
    whole: chat({ content: [thinking('a', 'b', 'c'), { type: 'text', text: 'Hi' }] }),
    content: [
      { type: 'reasoning', text: 'abc' },
      { type: 'text', text: 'Hi' },
    ],
  },
  'Chat: text, an image, text (OpenRouter)': {
    vendor: 'openrouter',
    frames: [
      chunk({ content: 'one' }),
      chunk({ images: [picture] }),
      chunk({ content: 'two' }, 'stop'),
    ],
    content: [{ type: 'text', text: 'one' }, image, { type: 'text', text: 'two' }],
  },
  'Chat: reasoning in the field of Groq': {
    vendor: 'groq',
    frames: [
      chunk({ reasoning: 'h' }),
      chunk({ reasoning: 'm' }),
      chunk({ content: 'Hi' }, 'stop'),
    ],
    whole: chat({ reasoning: 'hm', content: 'Hi' }),
    content: [
      { type: 'reasoning', text: 'hm' },
      { type: 'text', text: 'Hi' },
    ],
  },
  'Google: a thought with a signature': {
    vendor: 'google',
    frames: [gemini(signed, { text: 'Hi' })],
    whole: gemini(signed, { text: 'Hi' }),
    content: [
      { type: 'reasoning', text: 'hm' },
      { type: 'text', text: 'Hi' },
    ],
  },
}

/** The content without the vendor's own data. */
const plain = ({ content }: AssistantMessage): unknown[] =>
  content.map(({ metadata: _metadata, ...block }) => block)

describe.each(Object.entries(cases))(
  '%s',
  (_, { vendor, frames, whole, content, calls: expected = [] }) => {
    const ask = (body: string, type: string) =>
      llm({
        model: providers.get(vendor)!('m'),
        toolStrategy: { maxIterations: 0 },
        config: {
          apiKey: 'key-0123456789',
          retryStrategy: new NoRetry(),
          fetch: async () => new Response(body, { headers: { 'content-type': type } }),
        },
      })

    test('UPP-089 UPP-145 its stream is balanced and has the whole answer', async () => {
      const stream = ask(sse(frames), 'text/event-stream').stream('x')
      checkGrammar(await collect(stream))
      const { response } = await stream.turn
      expect(plain(response)).toEqual(content)
      expect((response.toolCalls ?? []).map((call) => call.arguments)).toEqual(expected)
    })

    if (!whole) return
    test('UPP-091 in one piece it is the same', async () => {
      const turn = await ask(JSON.stringify(whole), 'application/json').generate('x')
      const streamed = await ask(sse(frames), 'text/event-stream').stream('x').turn
      const facts = ({ response, stopReason, usage, sources }: Turn): unknown => ({
        content: response.content,
        calls: response.toolCalls,
        metadata: response.metadata,
        stopReason,
        usage,
        sources,
      })
      expect(facts(turn)).toEqual(facts(streamed))
      expect(plain(turn.response)).toEqual(content)
    })
  },
)

test('UPP-088 UPP-089 a structured answer has the events of a text, under the name of an object', async () => {
  const script = [[reasons('hm'), says('{"a":1}'), calls('t', { b: 2 })], says('{"a":2}')]
  const tools = [{ name: 't', description: '', parameters: {}, run: () => 1 }]
  const clock = { now: () => 0 }
  const events = async (structure?: JsonObject): Promise<StreamEvent[]> => {
    const options = { model: scripted(script), tools, clock, ...(structure && { structure }) }
    return collect(llm(options).stream('x'))
  }
  const asText = (event: StreamEvent): StreamEvent => {
    if (event.type === 'object_delta') return { ...event, type: 'text_delta' }
    if (event.type !== 'content_block_start' || event.delta.block !== 'object') return event
    return { ...event, delta: { ...event.delta, block: 'text' } }
  }
  const structured = await events({ type: 'object', properties: { a: { type: 'number' } } })
  expect(structured.map(asText)).toEqual(await events())
  const kinds = structured.map((event) => [event.type, event.index])
  expect(kinds).toContainEqual(['object_delta', 1])
  expect(kinds).not.toContainEqual(['text_delta', 1])
})

test('UPP-087 an abort after the end changes nothing: the events are still there, and the turn', async () => {
  const model = scripted([says('Hello there')])
  const stream = llm({ model }).stream('x')
  const turn = await stream.turn
  stream.abort()
  const events = await collect(stream)
  expect(events.at(-1)?.type).toBe('message_stop')
  expect(events.filter(({ type }) => type === 'text_delta')).not.toEqual([])
  expect(await stream.turn).toBe(turn)
  expect(() => stream[Symbol.asyncIterator]()).toThrow('iterated already')
})

test('UPP-087 UPP-107 all events of a large batch are delivered, in order', async () => {
  const pieces = Array.from({ length: 500 }, (_, n) => `${n} `)
  const delta = (text: string): StreamEvent => ({ type: 'text_delta', index: 0, delta: { text } })
  const model = scripted([emits(...pieces.map(delta))])
  const events = await collect(llm({ model }).stream('x'))
  expect(events.filter(({ type }) => type === 'text_delta')).toEqual(pieces.map(delta))
})
