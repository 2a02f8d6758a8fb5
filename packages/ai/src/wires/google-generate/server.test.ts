import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sequentialIds, SseDecoder, type JsonObject, type JsonValue } from '@skein/base'
import { checkGrammar, contextOf, fold, requestOf } from '../../../test/wires/wire-cases.ts'
import type { StreamEvent } from '../../contract/event.ts'
import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
} from '../../contract/message.ts'
import { googleGenerateServer as server } from './server.ts'
import { googleGenerate as wire } from './wire.ts'

const target = { provider: 'google', modelId: 'gemini-x', dialect: {} }
const runs = { numRuns: process.env['SKEIN_DEEP'] ? 5000 : 100, seed: 13 }
const route = { path: '/v1beta/models/gemini-x:generateContent', search: '' }
const context = {
  request: server.decodeRequest({ contents: [] }, route),
  id: '7',
  createdAt: 0,
}

const text = fc.string({ minLength: 1, maxLength: 8, unit: 'grapheme' })
const args = fc.dictionary(fc.string({ maxLength: 4 }), fc.jsonValue({ maxDepth: 2 }), {
  maxKeys: 3,
})
/** Parts in the form that decoding gives back: signed text is a part of its own. */
const part = (signedText: fc.Arbitrary<string>): fc.Arbitrary<JsonObject> =>
  fc.oneof(
    text.map((text) => ({ text })),
    text.map((text) => ({ text, thought: true })),
    fc.tuple(signedText, text).map(([text, thoughtSignature]) => ({ text, thoughtSignature })),
    args.map((args) => ({ functionCall: { name: 'f', args: args as JsonObject } })),
    fc.tuple(fc.uuid(), args).map(([id, args]) => ({
      functionCall: { id, name: 'g', args: args as JsonObject },
      thoughtSignature: 'S',
    })),
    fc.constant({ executableCode: { code: '1' } }),
    fc.constant({ inlineData: { mimeType: 'image/png', data: 'AQID' } }),
    fc.constant({ inlineData: { mimeType: 'audio/wav', data: 'AQID' }, thoughtSignature: 'S' }),
  )
const answer = (signedText: fc.Arbitrary<string>) =>
  fc.record({
    parts: fc.array(part(signedText), { maxLength: 5 }),
    finishReason: fc.constantFrom('STOP', 'MAX_TOKENS', 'SAFETY'),
    usage: fc.record({ promptTokenCount: fc.nat(), candidatesTokenCount: fc.nat() }),
  })
type Answer = { parts: JsonObject[]; finishReason: string; usage: JsonObject }
const ids = () => contextOf(target, requestOf({ ids: sequentialIds('made') }))
const decode = ({ parts, finishReason, usage }: Answer): StreamEvent[] =>
  wire.decodeResponse(
    { candidates: [{ content: { parts }, finishReason }], usageMetadata: usage },
    ids(),
  )
const same = (events: readonly StreamEvent[]) => {
  const { content, toolCalls, stop } = fold(events)
  const { inputTokens, outputTokens } = stop!.usage
  return { content, toolCalls, stopReason: stop!.stopReason, inputTokens, outputTokens }
}

describe('decode ∘ encode', () => {
  test('of a whole answer changes nothing', () => {
    fc.assert(
      fc.property(answer(text), (body) => {
        const events = decode(body)
        const again = wire.decodeResponse(server.encodeResponse(events, context), ids())
        expect(same(again)).toEqual(same(events))
        expect(again[0]?.delta).toEqual({ provider: 'google', model: 'gemini-x', id: '7' })
      }),
      runs,
    )
  })

  test('of a stream changes nothing', () => {
    fc.assert(
      // A signature that follows its text comes in an empty part, so only such parts come back alike.
      fc.property(answer(fc.constant('')), (body) => {
        const events = decode(body)
        const encoder = server.createEncoder(context)
        const sse = events.map((event) => encoder.push(event)).join('') + encoder.end()
        const decoder = wire.createDecoder(ids())
        const frames = new SseDecoder().push(new TextEncoder().encode(sse))
        const again = [...frames.flatMap((frame) => decoder.push(frame)), ...decoder.end()]
        checkGrammar(again)
        expect(same(again)).toEqual(same(events))
      }),
      runs,
    )
  })

  test('of a request changes nothing but the ids that were never given', () => {
    const user = fc.array(
      fc.oneof(
        text.map((text) => ({ type: 'text' as const, text })),
        fc.constantFrom(
          {
            type: 'image' as const,
            source: { type: 'base64' as const, data: 'AQID' },
            mimeType: 'image/png',
          },
          {
            type: 'image' as const,
            source: { type: 'url' as const, url: 'https://x/y' },
            mimeType: 'image/png',
          },
          {
            type: 'document' as const,
            source: { type: 'text' as const, data: 'ab' },
            mimeType: 'text/csv',
          },
          { type: 'audio' as const, data: new Uint8Array([1]), mimeType: 'audio/wav' },
          {
            type: 'video' as const,
            data: new Uint8Array([1]),
            mimeType: 'video/mp4',
            metadata: { google: { videoMetadata: { fps: 1 } } },
          },
          { type: 'binary' as const, data: new Uint8Array([1]), mimeType: 'application/x' },
        ),
      ),
      { minLength: 1, maxLength: 3 },
    )
    const round = fc.tuple(user, answer(text)).map(([content, body]): Message[] => {
      const { content: blocks, toolCalls, metadata } = fold(decode(body))
      if (blocks.length === 0 && !toolCalls) return [new UserMessage(content)]
      const results = toolCalls?.map(({ toolCallId, toolName }, index) => ({
        toolCallId,
        toolName,
        result: [{ a: index }, 'text', ['list'], { error: 'mine' }][index % 4],
        ...(index === 1 && { isError: true }),
      }))
      return [
        new UserMessage(content),
        new AssistantMessage(blocks, toolCalls, { metadata: metadata! }),
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
            params: {
              generationConfig: { topK: 1 },
              labels: { a: 'b' },
              tools: [{ googleSearch: {} }],
            },
            tools: [{ name: 'f', description: 'F.', parameters: { type: 'object' }, run: () => 0 }],
            structure: { type: 'object' },
          })
          const encoded = wire.encodeRequest(request, target, stream ? 'stream' : 'complete')
          const [path = '', search = ''] = encoded.path.split('?')
          const read = server.decodeRequest(JSON.parse(encoded.body) as JsonValue, { path, search })
          expect(plain(read.messages)).toEqual(plain(messages))
          const { params, structure } = request
          expect(read).toMatchObject({ modelId: 'gemini-x', stream, structure, params })
          expect(read.system).toBe(system)
          const { run: _, ...declared } = request.tools[0]!
          expect(read.tools).toEqual([declared])
        },
      ),
      runs,
    )
  })

  /** Messages with bytes as base64, and ids by the place of their call. */
  function plain(messages: readonly Message[]): unknown {
    const places = new Map<string, string>()
    const place = (id: string): string => {
      if (!places.has(id)) places.set(id, `call ${places.size}`)
      return places.get(id)!
    }
    return messages.map((message) => {
      if (message.type === 'tool_result') {
        const { results } = message
        const shown = results.map((result) => ({ ...result, toolCallId: place(result.toolCallId) }))
        places.clear()
        return shown
      }
      const calls = message.type === 'assistant' ? (message.toolCalls ?? []) : []
      return {
        content: message.content,
        calls: calls.map((call) => ({ ...call, toolCallId: place(call.toolCallId) })),
        order: message.metadata?.['google']?.['order'],
      }
    })
  }
})

describe('a request of a client', () => {
  test('schemas in the subset of the API become JSON Schema', () => {
    const schema = {
      type: 'OBJECT',
      properties: { a: { type: 'STRING', nullable: true, enum: ['OBJECT'] } },
    }
    const request = server.decodeRequest(
      {
        contents: [{ parts: [{ text: 'Hi' }] }],
        generationConfig: { responseMimeType: 'application/json', responseSchema: schema },
        tools: [{ functionDeclarations: [{ name: 'f', parameters: schema }] }],
      },
      { path: '/v1beta/models/m:streamGenerateContent', search: '?alt=sse' },
    )
    const expected = {
      type: 'object',
      properties: { a: { type: ['string', 'null'], enum: ['OBJECT'] } },
    }
    expect(request).toMatchObject({ modelId: 'm', stream: true, structure: expected, params: {} })
    expect(request.tools[0]?.parameters).toEqual(expected)
    expect(request.messages[0]?.text).toBe('Hi')
  })

  test.each<[string, JsonValue, string]>([
    ['body', 7, route.path],
    ['"contents"', {}, route.path],
    ['path', { contents: [] }, '/v1beta/models/m:countTokens'],
    ['contents[0]', { contents: ['x'] }, route.path],
    ['contents[0].parts[0]', { contents: [{ parts: [{}] }] }, route.path],
    [
      'inlineData.data',
      { contents: [{ parts: [{ inlineData: { mimeType: 'audio/x', data: '!' } }] }] },
      route.path,
    ],
    [
      'functionDeclarations[0].name',
      { contents: [], tools: [{ functionDeclarations: [{}] }] },
      route.path,
    ],
  ])('a wrong %s is named', (field, body, path) => {
    expect(() => server.decodeRequest(body, { path, search: '' })).toThrow(
      expect.objectContaining({
        code: 'INVALID_REQUEST',
        message: expect.stringContaining(field),
      }),
    )
  })
})

test('errors served are read back as the same code', () => {
  const codes = [
    'AUTHENTICATION_FAILED',
    'RATE_LIMITED',
    'QUOTA_EXCEEDED',
    'CONTEXT_LENGTH_EXCEEDED',
    'MODEL_NOT_FOUND',
    'INVALID_REQUEST',
    'PROVIDER_ERROR',
  ] as const
  for (const code of codes) {
    const { status, body } = server.encodeError({ code, message: 'm', retryAfterMs: 1500 })
    const headers = { get: () => null }
    const error = wire.decodeError({ status, json: body, text: '', headers }, target)
    expect(error).toMatchObject({ code, retryAfterMs: 1500 })
  }
  const sse = server.createEncoder(context).fail({ code: 'RATE_LIMITED', message: 'slow' })
  const [frame] = new SseDecoder().push(new TextEncoder().encode(sse))
  expect(() => wire.createDecoder(ids()).push(frame!)).toThrow(
    expect.objectContaining({ code: 'RATE_LIMITED', message: 'slow' }),
  )
})

test('a file by address is an image or a document; a part without one is refused', () => {
  const decode = (part: JsonObject) =>
    server.decodeRequest({ contents: [{ role: 'user', parts: [part] }] }, route).messages[0]
  const file = (mimeType: string | undefined) =>
    decode({ fileData: { fileUri: 'https://a.test/f', ...(mimeType && { mimeType }) }, x: 1 })
  const source = { type: 'url', url: 'https://a.test/f' }
  const metadata = { google: { x: 1 } }
  expect(file('image/png')).toMatchObject({
    content: [{ type: 'image', source, mimeType: 'image/png', metadata }],
  })
  expect(file('application/pdf')).toMatchObject({
    content: [{ type: 'document', source, mimeType: 'application/pdf', metadata }],
  })
  expect(file(undefined)).toMatchObject({
    content: [{ type: 'document', mimeType: 'application/octet-stream' }],
  })
  for (const part of [{}, { other: 1 }, { fileData: { mimeType: 'a/b' } }])
    expect(() => decode(part)).toThrow(expect.objectContaining({ code: 'INVALID_REQUEST' }))
})

test('the status of an error is the one that is known, else that of its code', () => {
  const error = { code: 'PROVIDER_ERROR', message: 'no' } as const
  expect(server.encodeError(error)).toMatchObject({ status: 500, body: { error: { code: 500 } } })
  expect(server.encodeError({ ...error, statusCode: 503 })).toMatchObject({
    status: 503,
    body: { error: { code: 503, message: 'no' } },
  })
})
