import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { sequentialIds, type JsonObject, type JsonValue } from '@skein/base'
import {
  checkGrammar,
  contextOf,
  decodeStream,
  fold,
  requestOf,
} from '../../../test/wires/wire-cases.ts'
import { ollamaChat } from './wire.ts'

// Lines are written from the API's documentation and SDK types (0.6.4); none is recorded traffic.
const target = { provider: 'ollama', modelId: 'qwen', dialect: {} }
const api = 'ollama-chat'

const line = (message: JsonObject, more: JsonObject = {}): JsonObject => ({
  model: 'qwen:1',
  created_at: '2026-11-15T00:00:00Z',
  message: { role: 'assistant', content: '', ...message },
  done: false,
  ...more,
})
const last = (more: JsonObject = {}): JsonObject =>
  line(
    {},
    {
      done: true,
      done_reason: 'stop',
      total_duration: 9,
      prompt_eval_count: 7,
      eval_count: 3,
      ...more,
    },
  )
const context = () => contextOf(target, requestOf({ ids: sequentialIds('call') }))
const stream = (lines: readonly JsonValue[]) => {
  const events = decodeStream(ollamaChat, lines, context())
  checkGrammar(events)
  return events
}

describe('a stream', () => {
  test('gives thinking, text and usage', () => {
    const events = stream([
      line({ thinking: 'H' }),
      line({ thinking: 'm' }),
      line({ content: 'Hel' }, { logprobs: [{ token: 'Hel', logprob: -1 }] }),
      line({ content: 'lo' }, { logprobs: [{ token: 'lo', logprob: -2 }] }),
      last({ something_new: 1 }),
    ])
    expect(fold(events)).toEqual({
      content: [
        { type: 'reasoning', text: 'Hm' },
        { type: 'text', text: 'Hello' },
      ],
      toolCalls: undefined,
      metadata: {
        ollama: {
          api,
          model: 'qwen:1',
          created_at: '2026-11-15T00:00:00Z',
          something_new: 1,
          logprobs: [
            { token: 'Hel', logprob: -1 },
            { token: 'lo', logprob: -2 },
          ],
        },
      },
      stop: expect.objectContaining({
        stopReason: 'end_turn',
        rawStopReason: 'stop',
        usage: {
          inputTokens: 7,
          outputTokens: 3,
          totalTokens: 10,
          cacheReadTokens: 0,
          cacheWriteTokens: 0,
          raw: { total_duration: 9, prompt_eval_count: 7, eval_count: 3 },
        },
      }),
    })
  })

  test('calls without ids get one from the request; ids that are given stay', () => {
    const { toolCalls, stop } = fold(
      stream([
        line({
          tool_calls: [
            { function: { name: 'add', arguments: { a: 1 } } },
            { function: { name: 'add', arguments: '{"a":2}', index: 1 } },
          ],
        }),
        line({ tool_calls: [{ id: 'given', function: { name: 'now', arguments: {} } }] }),
        last(),
      ]),
    )
    expect(toolCalls).toEqual([
      { toolCallId: 'call1', toolName: 'add', arguments: { a: 1 } },
      {
        toolCallId: 'call2',
        toolName: 'add',
        arguments: { a: 2 },
        metadata: { ollama: { api, native: { function: { index: 1 } } } },
      },
      {
        toolCallId: 'given',
        toolName: 'now',
        arguments: {},
        metadata: { ollama: { api, native: { id: 'given' } } },
      },
    ])
    expect(stop?.stopReason).toBe('tool_use')
  })

  test.each([
    ['stop', 'end_turn'],
    ['length', 'max_tokens'],
    ['load', 'other'],
    [undefined, 'end_turn'],
  ])('done_reason %s is %s', (done_reason, stopReason) => {
    const { done_reason: _, ...rest } = last()
    const { stop } = fold(stream([{ ...rest, ...(done_reason && { done_reason }) }]))
    expect(stop?.stopReason).toBe(stopReason)
  })
})

describe('a stream that fails', () => {
  const decode = (lines: readonly (JsonValue | string)[]) => () =>
    decodeStream(ollamaChat, lines, context())

  test('an error line is an error', () => {
    expect(decode([line({ content: 'x' }), { error: 'CUDA out of memory' }])).toThrow(
      expect.objectContaining({ code: 'PROVIDER_ERROR', message: 'CUDA out of memory' }),
    )
    expect(decode([{ error: "model 'x' not found" }])).toThrow(
      expect.objectContaining({ code: 'MODEL_NOT_FOUND' }),
    )
  })

  test.each<[string, (JsonValue | string)[]]>([
    ['one that is never done', [line({ content: 'x' })]],
    ['nothing at all', []],
    ['a line that is not JSON', ['{"model"']],
    ['a line that is a list', [[]]],
  ])('%s is INVALID_RESPONSE', (_, lines) => {
    expect(decode(lines)).toThrow(expect.objectContaining({ code: 'INVALID_RESPONSE' }))
  })

  test('a whole answer without a message is INVALID_RESPONSE', () => {
    for (const body of [null, [], { done: true }]) {
      expect(() => ollamaChat.decodeResponse(body, context())).toThrow(
        expect.objectContaining({ code: 'INVALID_RESPONSE' }),
      )
    }
  })
})

test('a whole answer folds to the message that its stream folds to', () => {
  const text = fc.string({ maxLength: 12, unit: 'grapheme' })
  const call = fc
    .dictionary(text, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 })
    .map((args) => ({ function: { name: 'f', arguments: args as JsonObject } }))
  const answer = fc.record({
    thinking: text,
    content: text,
    tool_calls: fc.array(call, { maxLength: 3 }),
  })
  fc.assert(
    fc.property(answer, fc.integer({ min: 1, max: 5 }), (message, size) => {
      const cut = (value: string): string[] => value.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
      const whole = ollamaChat.decodeResponse({ ...last(), message }, context())
      checkGrammar(whole)
      const streamed = stream([
        ...cut(message.thinking).map((thinking) => line({ thinking })),
        ...cut(message.content).map((content) => line({ content })),
        ...message.tool_calls.map((call) => line({ tool_calls: [call] })),
        last(),
      ])
      expect(fold(streamed)).toEqual(fold(whole))
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 5000 : 150, seed: 9 },
  )
})
