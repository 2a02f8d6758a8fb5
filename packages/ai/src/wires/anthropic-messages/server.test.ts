import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SseDecoder, type JsonObject, type JsonValue } from '@skein/base'
import { checkGrammar, contextOf, fold, requestOf } from '../../../test/wires/wire-cases.ts'
import type { StreamEvent } from '../../contract/event.ts'
import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
} from '../../contract/message.ts'
import type { ServerError } from '../wire-server.ts'
import { anthropicMessagesServer as server } from './server.ts'
import { anthropicMessages as wire } from './wire.ts'

const target = { provider: 'anthropic', modelId: 'claude-x', dialect: { maxTokens: 4096 } }
const api = 'anthropic-messages'
const runs = { numRuns: process.env['SKEIN_DEEP'] ? 5000 : 100, seed: 11 }
const route = { path: '/v1/messages', search: '' }
const context = {
  request: server.decodeRequest({ model: 'claude-x', messages: [] }, route),
  id: '7',
  createdAt: 0,
}

const text = fc.string({ minLength: 1, maxLength: 8, unit: 'grapheme' })
const json = fc.dictionary(fc.string({ maxLength: 4 }), fc.jsonValue({ maxDepth: 2 }), {
  maxKeys: 3,
})
const call = (extra: boolean) =>
  fc.record({ id: fc.uuid(), args: json, caller: fc.boolean() }).map(({ id, args, caller }) => [
    {
      type: 'tool_use',
      id: `toolu_${id}`,
      name: 'add',
      input: args as JsonObject,
      ...(caller && extra && { caller: { type: 'direct' } }),
    },
  ])
const block = (extra: boolean): fc.Arbitrary<JsonObject[]> =>
  fc.oneof(
    text.map((text) => [{ type: 'text', text }]),
    text.map((text) => [{ type: 'text', text, citations: [{ type: 'page_location', at: text }] }]),
    fc
      .tuple(fc.string({ maxLength: 5 }), text)
      .map(([thinking, signature]) => [{ type: 'thinking', thinking, signature }]),
    text.map((data) => [{ type: 'redacted_thinking', data }]),
    call(extra),
    json.map((input) => [
      { type: 'server_tool_use', id: 's', name: 'web_search', input: input as JsonObject },
    ]),
  )
/** Answers of the API: everything that can be said in it, in any order. */
const answer = (extra: boolean) =>
  fc.record({
    content: fc.array(block(extra), { maxLength: 5 }).map((blocks) => blocks.flat()),
    stop_reason: fc.constantFrom('end_turn', 'tool_use', 'max_tokens', 'pause_turn', 'refusal'),
    usage: fc.record({ input_tokens: fc.nat(), output_tokens: fc.nat() }),
  })
const decode = (body: JsonValue): StreamEvent[] => wire.decodeResponse(body, contextOf(target))

const same = (events: readonly StreamEvent[]) => {
  const { content, toolCalls, stop } = fold(events)
  const { inputTokens, outputTokens } = stop!.usage
  return { content, toolCalls, stopReason: stop!.stopReason, inputTokens, outputTokens }
}

describe('decode ∘ encode', () => {
  test('of a whole answer changes nothing', () => {
    fc.assert(
      fc.property(answer(true), (body) => {
        const events = decode(body as JsonObject)
        const again = decode(server.encodeResponse(events, context))
        expect(same(again)).toEqual(same(events))
        expect(again.at(-1)?.delta).toMatchObject({
          metadata: { anthropic: { api, id: 'msg_7', model: 'claude-x' } },
        })
      }),
      runs,
    )
  })

  test('of a stream changes nothing', () => {
    fc.assert(
      fc.property(answer(false), (body) => {
        const events = decode(body as JsonObject)
        const encoder = server.createEncoder(context)
        const sse = events.map((event) => encoder.push(event)).join('') + encoder.end()
        const frames = new SseDecoder().push(new TextEncoder().encode(sse))
        const decoder = wire.createDecoder(contextOf(target))
        const again = frames.flatMap((frame) => decoder.push(frame))
        decoder.end()
        checkGrammar(again)
        expect(same(again)).toEqual(same(events))
        for (const { event, data } of frames) expect(JSON.parse(data).type).toBe(event)
      }),
      runs,
    )
  })

  test('of a request changes nothing', () => {
    const metadata = { anthropic: { cache_control: { type: 'ephemeral' } } }
    const user = fc.array(
      fc.oneof(
        text.map((text) => ({ type: 'text' as const, text })),
        text.map((text) => ({ type: 'text' as const, text, metadata })),
        fc.constantFrom(
          {
            type: 'image' as const,
            source: { type: 'base64' as const, data: 'AQID' },
            mimeType: 'image/png',
          },
          {
            type: 'document' as const,
            source: { type: 'text' as const, data: 'abc' },
            mimeType: 'text/plain',
            title: 'T',
          },
          {
            type: 'document' as const,
            source: { type: 'url' as const, url: 'https://x/y' },
            mimeType: 'application/pdf',
            metadata,
          },
        ),
      ),
      { minLength: 1, maxLength: 3 },
    )
    // The API takes no thinking at the end of a message, so such a message is changed on its way.
    const closing = { type: 'text', text: 'So.' }
    const round = fc.tuple(user, answer(true)).map(([content, body]): Message[] => {
      const said = { ...body, content: [...body.content, closing] }
      const { content: blocks, toolCalls, metadata } = fold(decode(said as JsonObject))
      const answer = new AssistantMessage(blocks, toolCalls, { metadata: metadata! })
      const results = toolCalls?.map(({ toolCallId, toolName }, index) => ({
        toolCallId,
        toolName,
        result: index % 2 ? [{ type: 'text', text: 'r' }] : 'r',
        ...(index % 3 === 2 && { isError: true }),
      }))
      if (blocks.length === 0 && !toolCalls) return [new UserMessage(content)]
      return [
        new UserMessage(content),
        answer,
        ...(results ? [new ToolResultMessage(results)] : []),
      ]
    })
    const plain = (messages: readonly Message[]) =>
      messages.map((message) =>
        message.type === 'tool_result'
          ? message.results
          : {
              content: message.content,
              calls: 'toolCalls' in message ? message.toolCalls : undefined,
              order: message.metadata?.['anthropic']?.['order'],
            },
      )
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
              max_tokens: 5,
              thinking: { type: 'adaptive' },
              tools: [{ type: 'bash_1', name: 'bash' }],
            },
            tools: [
              {
                name: 'add',
                description: 'Adds.',
                parameters: { type: 'object' },
                run: () => 0,
                metadata,
              },
            ],
          })
          const { body } = wire.encodeRequest(request, target, stream ? 'stream' : 'complete')
          const read = server.decodeRequest(JSON.parse(body) as JsonValue, route)
          expect(plain(read.messages)).toEqual(plain(messages))
          expect(read).toMatchObject({ modelId: 'claude-x', stream, params: request.params })
          expect(read.system).toBe(system)
          const { run: _, ...declared } = request.tools[0]!
          expect(read.tools).toEqual([declared])
        },
      ),
      runs,
    )
  })
})

describe('a request of a client', () => {
  const read = (body: JsonObject) => server.decodeRequest({ model: 'm', ...body }, route)

  test('system blocks, a system message, structure and output options', () => {
    const request = read({
      system: [{ type: 'text', text: 'A', cache_control: {} }],
      messages: [
        { role: 'system', content: 'B' },
        { role: 'user', content: 'Hi' },
        { role: 'system', content: 'C' },
      ],
      output_config: { effort: 'low', format: { type: 'json_schema', schema: { type: 'object' } } },
    })
    expect(request.system).toBe('A\n\nB')
    expect(request.messages.map(({ text }) => text)).toEqual(['Hi', 'C'])
    expect(request.structure).toEqual({ type: 'object' })
    expect(request.params).toEqual({ output_config: { effort: 'low' } })
  })

  test('results beside text become two messages, with the names of their calls', () => {
    const call = { type: 'tool_use', id: 't1', name: 'add', input: {} }
    const result = { type: 'tool_result', tool_use_id: 't1', content: 'ok', is_error: true }
    const { messages } = read({
      messages: [
        { role: 'assistant', content: [call] },
        { role: 'user', content: [result, { type: 'text', text: 'and?' }] },
      ],
    })
    expect(messages.map(({ type }) => type)).toEqual(['assistant', 'tool_result', 'user'])
    expect((messages[1] as ToolResultMessage).results).toEqual([
      { toolCallId: 't1', toolName: 'add', result: 'ok', isError: true },
    ])
  })

  test.each<[string, JsonValue]>([
    ['body', []],
    ['"model"', { messages: [] }],
    ['"messages"', { model: 'm' }],
    ['messages[0].role', { model: 'm', messages: [{ role: 'robot', content: '' }] }],
    ['messages[0].content', { model: 'm', messages: [{ role: 'user', content: 7 }] }],
    ['messages[0].content[0].type', { model: 'm', messages: [{ role: 'user', content: [{}] }] }],
    [
      'messages[0].content[0].source',
      {
        model: 'm',
        messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'file' } }] }],
      },
    ],
    ['tools[0].name', { model: 'm', messages: [], tools: [{}] }],
  ])('a wrong %s is named', (field, body) => {
    expect(() => server.decodeRequest(body, route)).toThrow(
      expect.objectContaining({
        code: 'INVALID_REQUEST',
        message: expect.stringContaining(field),
      }),
    )
  })
})

describe('errors served', () => {
  test('are read back as the same code', () => {
    const codes = [
      'AUTHENTICATION_FAILED',
      'RATE_LIMITED',
      'QUOTA_EXCEEDED',
      'CONTEXT_LENGTH_EXCEEDED',
      'MODEL_NOT_FOUND',
      'INVALID_REQUEST',
      'CONTENT_FILTERED',
      'PROVIDER_ERROR',
    ] as const
    for (const code of codes) {
      const { status, body } = server.encodeError({ code, message: 'm' } satisfies ServerError)
      const headers = { get: () => null }
      const error = wire.decodeError({ status, json: body, text: '', headers }, target)
      expect(error.code).toBe(code)
    }
  })

  test('inside a stream end it', () => {
    const sse = server.createEncoder(context).fail({ code: 'RATE_LIMITED', message: 'slow' })
    const [frame] = new SseDecoder().push(new TextEncoder().encode(sse))
    expect(frame?.event).toBe('error')
    expect(() => wire.createDecoder(contextOf(target)).push(frame!)).toThrow(
      expect.objectContaining({ code: 'RATE_LIMITED', message: 'slow' }),
    )
  })
})
