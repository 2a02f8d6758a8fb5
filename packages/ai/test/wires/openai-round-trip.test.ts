import { type JsonObject, type JsonValue, SseDecoder } from '@skein/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { answerEvents } from './arbitrary-events.ts'
import { conversation, jsonObject, plain, runs, someText } from './arbitrary-message.ts'
import { checkGrammar, contextOf, fold, requestOf } from './wire-cases.ts'
import type { StreamEvent } from '../../src/contract/event.ts'
import { chatDialect } from '../../src/wires/openai-chat/dialect.ts'
import { openaiChatServer } from '../../src/wires/openai-chat/server.ts'
import { openaiChat } from '../../src/wires/openai-chat/wire.ts'
import { responsesDialect } from '../../src/wires/openai-responses/types.ts'
import { openaiResponsesServer } from '../../src/wires/openai-responses/server.ts'
import { openaiResponses } from '../../src/wires/openai-responses/wire.ts'
import type { Wire } from '../../src/wires/wire.ts'
import type { WireServer } from '../../src/wires/wire-server.ts'

interface Case {
  readonly wire: Wire
  readonly server: WireServer
  readonly dialect: unknown
}

const cases: [string, Case][] = [
  ['openai-chat', { wire: openaiChat, server: openaiChatServer, dialect: chatDialect }],
  [
    'openai-responses',
    { wire: openaiResponses, server: openaiResponsesServer, dialect: responsesDialect },
  ],
]

const route = { path: '', search: '' }
const tool = {
  name: 'weather',
  description: 'Tells the weather.',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  run: () => '',
}
const { run: _, ...declared } = tool

describe.each(cases)('%s', (_name, { wire, server, dialect }) => {
  const target = { provider: 'openai', modelId: 'm', dialect }
  const context = contextOf(target)
  const serving = {
    request: server.decodeRequest({ model: 'm', messages: [], input: [] }, route),
    id: '1',
    createdAt: 0,
  }

  test('a request is read as it was written', () => {
    const paramsOf = fc.record({ temperature: fc.nat(2), extra: jsonObject }, { requiredKeys: [] })
    fc.assert(
      fc.property(
        conversation,
        fc.option(someText, { nil: undefined }),
        paramsOf,
        fc.constantFrom('complete', 'stream'),
        (messages, system, params, mode) => {
          const request = requestOf({
            messages,
            params,
            tools: [tool],
            ...(system !== undefined && { system }),
          })
          const { body, warnings } = wire.encodeRequest(request, target, mode)
          const read = server.decodeRequest(JSON.parse(body) as JsonValue, route)
          expect(warnings).toEqual([])
          expect(plain(read.messages)).toEqual(plain(messages))
          expect(read.system).toBe(system)
          expect(read.params).toEqual(params)
          expect(read.tools).toEqual([declared])
          expect(read.modelId).toBe('m')
          expect(read.stream).toBe(mode === 'stream')
          expect(read.includeUsage).toBe(true === (mode === 'stream' || wire === openaiResponses))
        },
      ),
      runs,
    )
  })

  test('structure and native tools are read as they were written', () => {
    const structure = {
      type: 'object',
      properties: { a: { type: 'string' } },
      required: ['a'],
      additionalProperties: false,
    }
    const params = { tools: [{ type: 'web_search' }] }
    const { body } = wire.encodeRequest(requestOf({ structure, params }), target, 'complete')
    const read = server.decodeRequest(JSON.parse(body) as JsonValue, route)
    expect(read.structure).toEqual(structure)
    expect(read.params).toEqual(params)
    expect(read.tools).toEqual([])
  })

  /** Served as a stream, cut into reads of any size, and decoded again. */
  function throughStream(events: readonly StreamEvent[], size: number): StreamEvent[] {
    const streamed = { ...serving, request: { ...serving.request, includeUsage: true } }
    const encoder = server.createEncoder(streamed)
    const text = events.map((event) => encoder.push(event)).join('') + encoder.end()
    const bytes = new TextEncoder().encode(text)
    const sse = new SseDecoder()
    const decoder = wire.createDecoder(context)
    const decoded: StreamEvent[] = []
    for (let at = 0; at < bytes.length; at += size) {
      for (const frame of sse.push(bytes.subarray(at, at + size))) {
        decoded.push(...decoder.push(frame))
      }
    }
    return [...decoded, ...decoder.end()]
  }

  test('a served stream decodes to the events it was made of', () => {
    fc.assert(
      fc.property(answerEvents, fc.integer({ min: 1, max: 4000 }), (events, size) => {
        const decoded = throughStream(events, size)
        checkGrammar(decoded)
        expect(comparable(decoded)).toEqual(comparable(events))
      }),
      runs,
    )
  })

  test('a served whole answer folds to the same message as its stream', () => {
    fc.assert(
      fc.property(answerEvents, (events) => {
        const body = server.encodeResponse(events, serving)
        const decoded = wire.decodeResponse(JSON.parse(JSON.stringify(body)) as JsonValue, context)
        checkGrammar(decoded)
        expect(fold(decoded)).toEqual(fold(throughStream(events, 4096)))
        expect(withoutMetadata(fold(decoded))).toEqual(withoutMetadata(fold(events)))
      }),
      runs,
    )
  })

  test.each([
    'RATE_LIMITED',
    'QUOTA_EXCEEDED',
    'CONTEXT_LENGTH_EXCEEDED',
    'CONTENT_FILTERED',
    'MODEL_NOT_FOUND',
    'AUTHENTICATION_FAILED',
    'PROVIDER_ERROR',
  ] as const)('%s is read as it was served, whole and in a stream', (code) => {
    const { status, body } = server.encodeError({ code, message: 'why' })
    const headers = new Headers()
    const error = wire.decodeError({ status, headers, json: body, text: '' }, target)
    expect(error).toMatchObject({ code, message: 'why' })
    const sse = new SseDecoder()
    const failing = server.createEncoder(serving).fail({ code, message: 'why' })
    const decoder = wire.createDecoder(context)
    const frames = sse.push(new TextEncoder().encode(failing))
    expect(() => frames.forEach((frame) => decoder.push(frame))).toThrow(
      expect.objectContaining({ code, message: 'why' }),
    )
  })
})

/** Deltas of one block joined, ids and metadata left out: what a stream means. */
function comparable(events: readonly StreamEvent[]): unknown {
  return withoutMetadata(fold(events))
}

function withoutMetadata(folded: ReturnType<typeof fold>): unknown {
  const strip = (part: object): object => ({ ...part, metadata: undefined })
  const { stop, content, toolCalls } = folded
  const { raw: _raw, ...usage } = stop?.usage ?? ({} as JsonObject)
  return {
    content: content.map(strip),
    toolCalls: toolCalls?.map(strip),
    stopReason: stop?.stopReason,
    usage,
  }
}
