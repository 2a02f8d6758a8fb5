import fc from 'fast-check'
import type { JsonObject, JsonValue } from '@skein/base'
import { expect, test } from 'vitest'
import { contextOf, fold, frame, requestOf } from '../../../test/wires/wire-cases.ts'
import { AssistantMessage, UserMessage } from '../../contract/message.ts'
import type { StreamEvent } from '../../contract/event.ts'
import { googleInteractions } from './wire.ts'

// What the model said goes back as it came, whichever of its steps it is made of.

const target = { provider: 'google', modelId: 'm', dialect: {} }
const word = fc.string({ minLength: 1, maxLength: 8, unit: 'grapheme' })
const bytes = fc.uint8Array({ minLength: 1, maxLength: 4 }).map((data) => Buffer.from(data).toString('base64')) // prettier-ignore
const json = fc.dictionary(word, fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2 })
const maybe = <T>(arbitrary: fc.Arbitrary<T>, field: string): fc.Arbitrary<object> =>
  fc.option(arbitrary).map((value) => (value === null ? {} : { [field]: value }))
const merged = (...parts: fc.Arbitrary<object>[]): fc.Arbitrary<JsonObject> =>
  fc.tuple(...parts).map((all) => Object.assign({}, ...all) as JsonObject)

const text = word.map((value): JsonObject => ({ type: 'text', text: value }))
const annotated = merged(
  text,
  fc.array(merged(fc.constant({ type: 'url_citation', url: 'https://x.test' }), maybe(word, 'title')), { minLength: 1, maxLength: 2 }).map((annotations) => ({ annotations })), // prettier-ignore
)
const image = bytes.map((data): JsonObject => ({ type: 'image', data, mime_type: 'image/png' }))
const video = bytes.map((data): JsonObject => ({ type: 'video', data, mime_type: 'video/mp4' }))
const far = word.map((uri): JsonObject => ({ type: 'image', uri, mime_type: 'image/png' }))
const document = bytes.map((data): JsonObject => ({ type: 'document', data }))
const thought = merged(
  fc.constant({ type: 'thought' }),
  word.map((signature) => ({ signature })),
  maybe(fc.array(fc.oneof(text, image), { minLength: 1, maxLength: 2 }), 'summary'),
)
const output = fc
  .array(fc.oneof(text, annotated, image, video, far, document), { minLength: 1, maxLength: 3 })
  .map((content): JsonObject => ({ type: 'model_output', content }))
const call = fc
  .tuple(word, json, maybe(word, 'signature'))
  .map(([name, args, more]): JsonObject => ({ type: 'function_call', name, arguments: args as JsonValue, ...more })) // prettier-ignore
const hosted = merged(
  fc.constantFrom({ type: 'google_search_call' }, { type: 'step_of_2027' }),
  maybe(json, 'arguments'),
  maybe(word, 'signature'),
)

/** Steps of one answer. Neighbouring outputs are one step, as the API sends them. */
const steps = fc
  .array(fc.oneof(thought, output, call, hosted), { minLength: 1, maxLength: 6 })
  .map((list) =>
    list
      .filter(({ type }, index) => type !== 'model_output' || list[index - 1]?.['type'] !== type)
      .map((step, index): JsonObject =>
        step['type'] === 'function_call' ? { id: `call ${index}`, ...step } : step,
      ),
  )

/** The steps that are sent for an answer with these events. */
function sentBack(events: readonly StreamEvent[]): JsonValue {
  const { content, toolCalls = [], metadata } = fold(events)
  const answer = new AssistantMessage(content, toolCalls, { metadata: metadata! })
  const messages = [new UserMessage('x'), answer, new UserMessage('y')]
  const { body } = googleInteractions.encodeRequest(requestOf({ messages }), target, 'complete')
  const input = (JSON.parse(body) as { input: JsonObject[] }).input
  return input.slice(1, -1).filter(({ type }) => type !== 'function_result')
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))
const runs = { numRuns: process.env['SKEIN_DEEP'] ? 3000 : 100, seed: 42 }

test('a complete answer is sent back step by step', () => {
  fc.assert(
    fc.property(steps, (list) => {
      const body = { id: 'i', status: 'completed', steps: list }
      expect(sentBack(googleInteractions.decodeResponse(body, contextOf(target)))).toEqual(plain(list)) // prettier-ignore
    }),
    runs,
  )
})

test('a streamed answer too, also if its steps overlap', () => {
  fc.assert(
    fc.property(steps, fc.boolean(), (list, overlap) => {
      const started = list.map((step, index) => ({ event_type: 'step.start', index, step }))
      const stopped = list.map((_, index) => ({ event_type: 'step.stop', index }))
      const events = overlap
        ? [...started, ...stopped]
        : started.flatMap((event, index) => [event, stopped[index]!])
      const decoder = googleInteractions.createDecoder(contextOf(target))
      const end = { event_type: 'interaction.completed', interaction: { status: 'completed' } }
      const decoded = [...events, end].flatMap((event) => decoder.push(frame(event as JsonObject)))
      expect(sentBack([...decoded, ...decoder.end()])).toEqual(plain(list))
    }),
    runs,
  )
})
