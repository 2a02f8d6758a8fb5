/** Fields that no one knows, in every object of every frame that describes the answer. */
import type { JsonObject } from '@skein/base'
import { llm, type BoundLLMModel, type ModelReference } from '@skein/ai'
import { google } from '@skein/ai/google'
import { openaiCompatible } from '@skein/ai/openai-compatible'
import { describe, expect, test } from 'vitest'
import type { VendorAnswer } from './cases/vendor-case.ts'
import { askVendor } from './support/ask-vendor.ts'
import { vendorCases } from './vendors.ts'

type WireName = NonNullable<BoundLLMModel['wire']>
type Frame = Record<string, JsonObject>
const inFirst = (list: unknown): JsonObject[] => (Array.isArray(list) ? list.slice(0, 1) : [])

/** The objects of a frame, or of a whole answer, whose unknown fields belong to the message. */
const places: Readonly<Record<WireName, (frame: Frame) => readonly (JsonObject | undefined)[]>> = {
  'openai-chat': (frame) => [
    frame,
    ...inFirst(frame['choices']).flatMap((choice) => [
      choice,
      (choice['delta'] ?? choice['message']) as JsonObject,
    ]),
  ],
  'ollama-chat': (frame) => [frame, frame['message']],
  'google-generate': (frame) => [frame, ...inFirst(frame['candidates'])],
  'bedrock-converse': (frame) =>
    'output' in frame || /^(metadata|messageStop)$/.test(String(frame['type'])) ? [frame] : [],
  'google-interactions': (frame) =>
    'steps' in frame
      ? [frame]
      : /created|completed/.test(String(frame['event_type']))
        ? [frame['interaction']]
        : [],
  'anthropic-messages': (frame) =>
    'content' in frame
      ? [frame]
      : [frame['message'], 'stop_reason' in (frame['delta'] ?? {}) ? frame['delta'] : undefined],
  // The last event has the whole answer, and replaces what the others said of it.
  'openai-responses': (frame) =>
    'output' in frame ? [frame] : String(frame['type']) === 'response.completed' ? [frame['response']] : [], // prettier-ignore
}

/** Adds a field to each of the places; `kept` collects what must be in the metadata. */
function mark(frame: Frame, wire: WireName, name: string, kept: Record<string, unknown>): void {
  for (const [index, place] of places[wire](frame).entries()) {
    if (!place) continue
    const field = `x_${name}_${index}`
    const value = { a: [name, null], b: { c: index } }
    Object.assign(place, { [field]: value, x_same: 'same' })
    kept[field] = value
    kept['x_same'] = 'same'
  }
}

function markedStream(stream: string, wire: WireName, kept: Record<string, unknown>): string {
  const lines = stream.split('\n').map((line, index) => {
    const start = line.startsWith('data: ') ? 'data: ' : ''
    const json = line.slice(start.length)
    if (!json.startsWith('{')) return line
    const frame = JSON.parse(json) as Frame
    mark(frame, wire, `frame${index}`, kept)
    return start + JSON.stringify(frame)
  })
  return lines.join('\n')
}

describe.each(['text', 'calls'] as const)('an answer with %s', (kind) => {
  test.each(vendorCases)(
    'UPP-062 UPP-061 UPP-157 $name: is kept with all of them, waited for and streamed',
    async (vendor) => {
      const { wire } = llm({ model: vendor.model, config: { apiKey: 'key' } }).model
      const given: VendorAnswer = vendor.answers[kind]
      const options = { toolStrategy: { maxIterations: 0 } }

      const inWhole: Record<string, unknown> = {}
      const whole = structuredClone(given.whole) as Frame
      mark(whole, wire!, 'whole', inWhole)
      const waited = await askVendor(vendor, 'tools', {
        answers: { ...given, whole: whole as JsonObject },
        options,
      })
      expect(waited.turn.response.metadata?.[vendor.provider]).toMatchObject(inWhole)

      const inStream: Record<string, unknown> = {}
      const stream = markedStream(given.stream, wire!, inStream)
      const streamed = await askVendor(vendor, 'tools', {
        way: 'stream',
        answers: { ...given, stream },
        options,
      })
      expect(streamed.turn.response.metadata?.[vendor.provider]).toMatchObject(inStream)
      expect(Object.keys(inStream).length).toBeGreaterThan(1)
      expect(streamed.turn.response.text).toBe(waited.turn.response.text)
    },
  )
})

async function answered(frames: readonly object[], model: ModelReference) {
  const text = frames.map((frame) => `data: ${JSON.stringify(frame)}\n\n`).join('')
  const headers = { 'content-type': 'text/event-stream' }
  const config = { apiKey: 'key', fetch: async () => new Response(text, { headers }) }
  const { response } = await llm({ model, config }).stream('x').turn
  return response
}

test('UPP-062 UPP-157 Google: what is said of a prompt that was not blocked is kept', async () => {
  const promptFeedback = { safetyRatings: [{ category: 'HARM', probability: 'LOW' }] }
  const part = (text: string) => ({ content: { parts: [{ text }] } })
  const { metadata, text } = await answered(
    [
      { promptFeedback, candidates: [part('a')] },
      { candidates: [{ ...part('b'), finishReason: 'STOP' }] },
    ],
    google('m'),
  )
  expect(metadata?.['google']).toMatchObject({ promptFeedback })
  expect(text).toBe('ab')
})

test('UPP-062 UPP-157 Chat Completions: facts of a choice are merged, its lists grow, facts of the answer are replaced', async () => {
  const model = openaiCompatible({ name: 'some', baseUrl: 'https://x.test/v1' })('m')
  const chunk = (content: string, choice: object, top: object = {}) => ({
    id: 'c',
    choices: [{ index: 0, delta: { content }, finish_reason: null, ...choice }],
    ...top,
  })
  const filter = (name: string) => ({ content_filter_results: { [name]: { filtered: false } } })
  const { metadata, text } = await answered(
    [
      chunk('a', { ...filter('hate'), token_ids: [7] }, { citations: ['https://x.test/1'] }),
      // The same frame three times: each is new text and a new token.
      ...[1, 2, 3].map(() => chunk('b', { ...filter('violence'), token_ids: [8] })),
      chunk('', { finish_reason: 'stop', content_filter_results: {}, token_ids: null }, { citations: ['https://x.test/1', 'https://x.test/2'] }), // prettier-ignore
    ],
    model,
  )
  expect(text).toBe('abbb')
  expect(metadata?.['some']).toMatchObject({
    content_filter_results: { hate: { filtered: false }, violence: { filtered: false } },
    token_ids: [7, 8, 8, 8],
    citations: ['https://x.test/1', 'https://x.test/2'],
  })
})
