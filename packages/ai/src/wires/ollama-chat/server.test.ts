import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NdjsonDecoder, sequentialIds, type JsonObject, type JsonValue } from '@skein/base'
import { checkGrammar, contextOf, fold, frame, requestOf } from '../../../test/wires/wire-cases.ts'
import type { StreamEvent } from '../../contract/event.ts'
import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
} from '../../contract/message.ts'
import { ollamaChatServer as server } from './server.ts'
import { ollamaChat as wire } from './wire.ts'

const target = { provider: 'ollama', modelId: 'qwen', dialect: {} }
const runs = { numRuns: process.env['SKEIN_DEEP'] ? 5000 : 100, seed: 17 }
const route = { path: '/api/chat', search: '' }
const context = {
  request: server.decodeRequest({ model: 'qwen', messages: [] }, route),
  id: '7',
  createdAt: 0,
}

const text = fc.string({ minLength: 1, maxLength: 8, unit: 'grapheme' })
const call: fc.Arbitrary<JsonObject> = fc
  .tuple(fc.option(fc.uuid(), { nil: undefined }), fc.dictionary(text, text, { maxKeys: 3 }))
  .map(([id, args]) => ({ ...(id && { id }), function: { name: 'f', arguments: { ...args } } }))
const answer = fc.record({
  message: fc.record({
    thinking: fc.oneof(fc.constant(''), text),
    content: fc.oneof(fc.constant(''), text),
    tool_calls: fc.array(call, { maxLength: 3 }),
  }),
  done: fc.constant(true),
  done_reason: fc.constantFrom('stop', 'length'),
  prompt_eval_count: fc.nat(),
  eval_count: fc.nat(),
})
const ids = () => contextOf(target, requestOf({ ids: sequentialIds('made') }))
const decode = (body: JsonObject): StreamEvent[] => wire.decodeResponse(body, ids())
const same = (events: readonly StreamEvent[]) => {
  const { content, toolCalls, stop } = fold(events)
  const { inputTokens, outputTokens } = stop!.usage
  return { content, toolCalls, stopReason: stop!.stopReason, inputTokens, outputTokens }
}

describe('decode ∘ encode', () => {
  test('of a whole answer changes nothing', () => {
    fc.assert(
      fc.property(answer, (body) => {
        const events = decode(body)
        expect(same(decode(server.encodeResponse(events, context)))).toEqual(same(events))
      }),
      runs,
    )
  })

  test('of a stream changes nothing', () => {
    fc.assert(
      fc.property(answer, (body) => {
        const events = decode(body)
        const encoder = server.createEncoder(context)
        const lines = events.map((event) => encoder.push(event)).join('') + encoder.end()
        const decoder = wire.createDecoder(ids())
        const again = new NdjsonDecoder()
          .push(new TextEncoder().encode(lines))
          .flatMap((data) => decoder.push(frame(data)))
        decoder.end()
        checkGrammar(again)
        expect(same(again)).toEqual(same(events))
      }),
      runs,
    )
  })

  test('of a request changes nothing but the ids that were never given', () => {
    const round = fc.tuple(text, fc.boolean(), answer).map(([said, hasImage, body]): Message[] => {
      const image = {
        type: 'image' as const,
        source: { type: 'base64' as const, data: '/9j/AAAA' },
        mimeType: 'image/jpeg',
      }
      const user = new UserMessage([{ type: 'text', text: said }, ...(hasImage ? [image] : [])])
      const { content, toolCalls, metadata } = fold(decode(body))
      if (content.length === 0 && !toolCalls) return [user]
      const results = toolCalls?.map(({ toolCallId, toolName }, index) => ({
        toolCallId,
        toolName,
        result: index % 2 ? [{ type: 'text', text: 'r' }, image] : 'r',
      }))
      return [
        user,
        new AssistantMessage(content, toolCalls, { metadata: metadata! }),
        ...(results ? [new ToolResultMessage(results)] : []),
      ]
    })
    fc.assert(
      fc.property(
        fc.array(round, { maxLength: 3 }).map((rounds) => rounds.flat()),
        fc.option(text, { nil: undefined }),
        fc.boolean(),
        (messages, system, stream) => {
          const request = requestOf({
            messages,
            ...(system !== undefined && { system }),
            params: { think: true, options: { num_ctx: 1 }, tools: [{ type: 'other' }] },
            tools: [{ name: 'f', description: 'F.', parameters: { type: 'object' }, run: () => 0 }],
            structure: { type: 'object' },
          })
          const { body } = wire.encodeRequest(request, target, stream ? 'stream' : 'complete')
          const read = server.decodeRequest(JSON.parse(body) as JsonValue, route)
          expect(plain(read.messages)).toEqual(plain(messages))
          const { params, structure } = request
          expect(read).toMatchObject({ modelId: 'qwen', stream, structure, params })
          expect(read.system).toBe(system)
          const { run: _, ...declared } = request.tools[0]!
          expect(read.tools).toEqual([declared])
        },
      ),
      runs,
    )
  })

  /** Ids by the place of their call. */
  function plain(messages: readonly Message[]): unknown {
    let places = new Map<string, string>()
    return messages.map((message) => {
      if (message.type === 'tool_result')
        return message.results.map(({ toolCallId, ...rest }) => [places.get(toolCallId), rest])
      const calls = message.type === 'assistant' ? (message.toolCalls ?? []) : []
      places = new Map(calls.map(({ toolCallId }, index) => [toolCallId, `call ${index}`]))
      return { content: message.content, calls: calls.map((call) => ({ ...call, toolCallId: '' })) }
    })
  }
})

describe('a request of a client', () => {
  test('streams unless told not to; formats by name stay parameters', () => {
    const request = server.decodeRequest(
      { model: 'm', messages: [{ role: 'user', content: 'Hi' }], format: 'json' },
      route,
    )
    expect(request).toMatchObject({ stream: true, params: { format: 'json' } })
    expect(request.structure).toBeUndefined()
  })

  test('results of two calls of one tool are told apart by their order', () => {
    const call = { function: { name: 'f', arguments: {} } }
    const { messages } = server.decodeRequest(
      {
        model: 'm',
        messages: [
          { role: 'assistant', content: '', tool_calls: [call, call] },
          { role: 'tool', tool_name: 'f', content: 'one' },
          { role: 'tool', tool_name: 'f', content: 'two' },
          { role: 'system', content: 'later' },
        ],
      },
      route,
    )
    const [assistant, results, later] = messages as [
      AssistantMessage,
      ToolResultMessage,
      UserMessage,
    ]
    const callIds = assistant.toolCalls?.map(({ toolCallId }) => toolCallId)
    expect(new Set(callIds).size).toBe(2)
    expect(results.results.map(({ toolCallId }) => toolCallId)).toEqual(callIds)
    expect(later.text).toBe('later')
  })

  test.each<[string, JsonValue]>([
    ['body', null],
    ['"model"', {}],
    ['messages[0].role', { model: 'm', messages: [{ role: 'robot' }] }],
  ])('a wrong %s is named', (field, body) => {
    expect(() => server.decodeRequest(body, route)).toThrow(
      expect.objectContaining({
        code: 'INVALID_REQUEST',
        message: expect.stringContaining(field),
      }),
    )
  })
})

// Bodies as the documentation describes them; none is recorded.
test.each([
  [404, { error: "model 'x' not found, try pulling it first" }, 'MODEL_NOT_FOUND'],
  [400, { error: 'the input length exceeds the context length' }, 'CONTEXT_LENGTH_EXCEEDED'],
  [400, { error: '"qwen" does not support tools' }, 'INVALID_REQUEST'],
  [401, { error: 'unauthorized' }, 'AUTHENTICATION_FAILED'],
  [500, { error: 'llama runner process has terminated' }, undefined],
])('an error of status %i keeps its words: %j is %s', (status, json, code) => {
  const error = wire.decodeError({ status, json, text: '', headers: { get: () => null } }, target)
  expect(error.message).toBe(json.error)
  expect(error.code).toBe(code)
})

test('errors served keep status and words', () => {
  expect(server.encodeError({ code: 'MODEL_NOT_FOUND', message: 'no' })).toEqual({
    status: 404,
    body: { error: 'no' },
  })
  const line = server.createEncoder(context).fail({ code: 'PROVIDER_ERROR', message: 'broken' })
  expect(() => wire.createDecoder(ids()).push(frame(line.trim()))).toThrow(
    expect.objectContaining({ code: 'PROVIDER_ERROR', message: 'broken' }),
  )
})
