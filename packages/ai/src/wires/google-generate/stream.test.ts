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
import { googleGenerate } from './wire.ts'

// Frames are written from the API's documentation and SDK types (2.32.0); none is recorded traffic.
const target = { provider: 'google', modelId: 'gemini-x', dialect: {} }
const api = 'google-generate'

const frame = (
  parts: JsonObject[],
  candidate: JsonObject = {},
  more: JsonObject = {},
): JsonObject => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...candidate }],
  modelVersion: 'gemini-x-1',
  responseId: 'r1',
  ...more,
})
const stop = { finishReason: 'STOP' }
const stream = (frames: readonly JsonValue[]) => {
  const context = contextOf(target, requestOf({ ids: sequentialIds('call') }))
  const events = decodeStream(googleGenerate, frames, context)
  checkGrammar(events)
  return events
}

describe('a stream', () => {
  test('joins neighbouring text and thought parts', () => {
    const events = stream([
      frame([{ text: 'Hm', thought: true }]),
      frame([{ text: '…', thought: true }, { text: 'Hel' }]),
      frame([{ text: 'lo' }]),
      frame([{ text: '' }], stop, {
        usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2, thoughtsTokenCount: 9 },
      }),
    ])
    expect(events[0]?.delta).toEqual({ provider: 'google', model: 'gemini-x-1', id: 'r1' })
    expect(fold(events)).toMatchObject({
      content: [
        { type: 'reasoning', text: 'Hm…' },
        { type: 'text', text: 'Hello' },
      ],
      metadata: { google: { api, id: 'r1', model: 'gemini-x-1' } },
      stop: {
        stopReason: 'end_turn',
        rawStopReason: 'STOP',
        usage: { inputTokens: 5, outputTokens: 11, totalTokens: 16, reasoningTokens: 9 },
      },
    })
  })

  test('keeps a signature with its own part, wherever it stands', () => {
    const { content, toolCalls } = fold(
      stream([
        frame([{ text: 'A' }, { text: 'B', thoughtSignature: 'S1' }, { text: 'C' }]),
        frame([{ text: '', thoughtSignature: 'S2' }]),
        frame([
          { functionCall: { name: 'add', args: { a: 1 } }, thoughtSignature: 'S3' },
          { functionCall: { id: 'x', name: 'now' } },
          { inlineData: { mimeType: 'image/png', data: 'AQID' }, thoughtSignature: 'S4' },
        ]),
        frame([], stop),
      ]),
    )
    const signed = (thoughtSignature: string) => ({
      metadata: { google: { api, native: { thoughtSignature } } },
    })
    expect(content).toEqual([
      { type: 'text', text: 'A' },
      { type: 'text', text: 'B', ...signed('S1') },
      { type: 'text', text: 'C' },
      { type: 'text', text: '', ...signed('S2') },
      {
        type: 'image',
        source: { type: 'bytes', data: new Uint8Array([1, 2, 3]) },
        mimeType: 'image/png',
        ...signed('S4'),
      },
    ])
    expect(toolCalls).toEqual([
      {
        toolCallId: 'call1',
        toolName: 'add',
        arguments: { a: 1 },
        metadata: { google: { api, native: { thoughtSignature: 'S3' }, generatedId: true } },
      },
      { toolCallId: 'x', toolName: 'now', arguments: {} },
    ])
  })

  test('writes streamed arguments as they come', () => {
    const part = (functionCall: JsonObject, more: JsonObject = {}) =>
      frame([{ functionCall, ...more }])
    const piece = (jsonPath: string, value: JsonObject) =>
      part({ partialArgs: [{ jsonPath, ...value }], willContinue: true })
    const events = stream([
      part({ name: 'book', id: 'c1', willContinue: true }, { thoughtSignature: 'S' }),
      piece('$.city', { stringValue: 'New ', willContinue: true }),
      piece('$.city', { stringValue: 'Yo"rk', willContinue: true }),
      piece('$.city', { stringValue: '' }),
      piece('$.guests[0].name', { stringValue: 'Ann' }),
      piece('$.guests[0].age', { numberValue: 30 }),
      piece("$.guests[1]['first name']", { nullValue: 'NULL_VALUE' }),
      piece('$.quiet', { boolValue: true }),
      part({}),
      frame([], stop),
    ])
    expect(fold(events).toolCalls).toEqual([
      {
        toolCallId: 'c1',
        toolName: 'book',
        arguments: {
          city: 'New Yo"rk',
          guests: [{ name: 'Ann', age: 30 }, { 'first name': null }],
          quiet: true,
        },
        metadata: { google: { api, native: { thoughtSignature: 'S' } } },
      },
    ])
    const deltas = events.filter(({ type }) => type === 'tool_call_delta')
    expect(deltas.length).toBeGreaterThan(7)
  })

  test('arguments that are cut off stay cut off', () => {
    const call = {
      name: 'rm',
      partialArgs: [{ jsonPath: '$.path', stringValue: '/tm', willContinue: true }],
    }
    const { toolCalls } = fold(
      stream([
        frame([{ functionCall: { ...call, willContinue: true } }]),
        frame([], { finishReason: 'MAX_TOKENS' }),
      ]),
    )
    expect(toolCalls?.[0]?.invalidArguments?.text).toBe('{"path":"/tm')
  })

  test('code, its result, drafts and parts to come are native blocks', () => {
    const parts = [
      { executableCode: { language: 'PYTHON', code: '1+1' } },
      { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '2' }, thoughtSignature: 'S' },
      { inlineData: { mimeType: 'image/png', data: 'AQID' }, thought: true },
      { toolCall: { id: 't', toolType: 'GOOGLE_SEARCH' } },
      { partOfTheFuture: { x: 1 } },
    ]
    const { content } = fold(stream([frame(parts, stop)]))
    expect(content).toEqual(
      ['executableCode', 'codeExecutionResult', 'inlineData', 'toolCall', 'partOfTheFuture'].map(
        (name, index) => ({
          type: 'native',
          name,
          metadata: { google: { api, native: parts[index] } },
        }),
      ),
    )
  })

  test('audio comes in pieces of one block', () => {
    const piece = (data: string) =>
      frame([{ inlineData: { mimeType: 'audio/L16;rate=24000', data } }])
    const { content } = fold(stream([piece('AQ=='), piece('AgM='), frame([], stop)]))
    expect(content).toEqual([
      { type: 'audio', data: new Uint8Array([1, 2, 3]), mimeType: 'audio/L16;rate=24000' },
    ])
  })

  test('grounding, citations, url context and unknown fields are kept', () => {
    const { metadata } = fold(
      stream([
        frame([{ text: 'x' }], { citationMetadata: { citations: [{ uri: 'a' }] } }),
        frame([{ text: 'y' }], {
          citationMetadata: { citations: [{ uri: 'b' }] },
          groundingMetadata: { webSearchQueries: ['q'] },
        }),
        frame(
          [],
          { ...stop, urlContextMetadata: { urlMetadata: [] }, groundingMetadata: {}, news: 1 },
          { createTime: 't' },
        ),
      ]),
    )
    expect(metadata?.['google']).toMatchObject({
      citationMetadata: { citations: [{ uri: 'a' }, { uri: 'b' }] },
      groundingMetadata: { webSearchQueries: ['q'] },
      urlContextMetadata: { urlMetadata: [] },
      news: 1,
      createTime: 't',
    })
  })

  test('usage by modality, tool prompts and cached input', () => {
    const usageMetadata = {
      promptTokenCount: 10,
      cachedContentTokenCount: 4,
      toolUsePromptTokenCount: 3,
      candidatesTokenCount: 7,
      promptTokensDetails: [
        { modality: 'TEXT', tokenCount: 8 },
        { modality: 'AUDIO', tokenCount: 2 },
      ],
      candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 7 }],
    }
    const { stop: end } = fold(stream([frame([{ text: 'x' }], stop, { usageMetadata })]))
    expect(end?.usage).toEqual({
      inputTokens: 13,
      outputTokens: 7,
      totalTokens: 20,
      cacheReadTokens: 4,
      cacheWriteTokens: 0,
      tokensByModality: { inputText: 8, inputAudio: 2, outputImage: 7 },
      raw: usageMetadata,
    })
  })

  test.each([
    ['STOP', 'end_turn'],
    ['MAX_TOKENS', 'max_tokens'],
    ['SAFETY', 'content_filter'],
    ['RECITATION', 'content_filter'],
    ['LANGUAGE', 'other'],
    ['OTHER', 'other'],
    ['BLOCKLIST', 'content_filter'],
    ['PROHIBITED_CONTENT', 'content_filter'],
    ['SPII', 'content_filter'],
    ['MALFORMED_FUNCTION_CALL', 'other'],
    ['IMAGE_SAFETY', 'content_filter'],
    ['UNEXPECTED_TOOL_CALL', 'other'],
    ['TOO_MANY_TOOL_CALLS', 'other'],
    ['IMAGE_PROHIBITED_CONTENT', 'content_filter'],
    ['NO_IMAGE', 'other'],
    ['IMAGE_RECITATION', 'content_filter'],
    ['IMAGE_OTHER', 'other'],
    ['FINISH_REASON_UNSPECIFIED', 'other'],
    ['CONTINUATION', 'pause'],
  ])('finish reason %s is %s, also without content', (finishReason, stopReason) => {
    const { stop } = fold(stream([{ candidates: [{ finishReason }] }]))
    expect(stop).toMatchObject({ stopReason, rawStopReason: finishReason })
  })
})

describe('a stream that fails', () => {
  const decode = (frames: readonly (JsonValue | string)[]) => () =>
    decodeStream(googleGenerate, frames, contextOf(target))

  test('a blocked prompt is CONTENT_FILTERED', () => {
    const promptFeedback = { blockReason: 'SAFETY', blockReasonMessage: 'no' }
    expect(decode([{ promptFeedback }])).toThrow(
      expect.objectContaining({ code: 'CONTENT_FILTERED', vendorCode: 'SAFETY' }),
    )
  })

  test('an error frame carries its status and wait', () => {
    const error = {
      code: 503,
      status: 'UNAVAILABLE',
      message: 'overloaded',
      details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '1.5s' }],
    }
    expect(decode([frame([{ text: 'x' }]), { error }])).toThrow(
      expect.objectContaining({ code: 'PROVIDER_ERROR', retryAfterMs: 1500 }),
    )
  })

  test.each<[string, (JsonValue | string)[]]>([
    ['one without finishReason', [frame([{ text: 'x' }])]],
    ['nothing at all', []],
    ['text that is not JSON', ['{']],
    ['base64 that is not', [frame([{ inlineData: { mimeType: 'image/png', data: '!' } }], stop)]],
    [
      'a path that goes back',
      [
        frame([
          {
            functionCall: {
              name: 'f',
              willContinue: true,
              partialArgs: [
                { jsonPath: '$.a.b', numberValue: 1 },
                { jsonPath: '$.c', numberValue: 1 },
                { jsonPath: '$.a.d', numberValue: 1 },
              ],
            },
          },
        ]),
      ],
    ],
    [
      'a path that is none',
      [frame([{ functionCall: { name: 'f', partialArgs: [{ jsonPath: 'a', numberValue: 1 }] } }])],
    ],
  ])('%s is INVALID_RESPONSE', (_, frames) => {
    expect(decode(frames)).toThrow(expect.objectContaining({ code: 'INVALID_RESPONSE' }))
  })
})

// One path: a whole answer and a stream of the same parts, text cut anywhere, give one message.
test('a whole answer folds to the message that its stream folds to', () => {
  const text = fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme' })
  const part: fc.Arbitrary<JsonObject> = fc.oneof(
    text.map((text) => ({ text })),
    text.map((text) => ({ text, thought: true })),
    fc.tuple(text, text).map(([text, thoughtSignature]) => ({ text, thoughtSignature })),
    fc
      .dictionary(text, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 })
      .map((args) => ({ functionCall: { name: 'f', args: args as JsonObject } })),
    fc.constant({ executableCode: { code: '1' } }),
    fc.constant({ inlineData: { mimeType: 'image/png', data: 'AQID' } }),
  )
  fc.assert(
    fc.property(fc.array(part, { maxLength: 6 }), fc.integer({ min: 1, max: 5 }), (parts, size) => {
      const pieces = parts.flatMap((part) => {
        if (typeof part['text'] !== 'string' || 'thoughtSignature' in part) return [part]
        const cut = part['text'].match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
        return cut.map((text) => ({ ...part, text }))
      })
      const context = () => contextOf(target, requestOf({ ids: sequentialIds('call') }))
      const whole = googleGenerate.decodeResponse(frame(parts, stop), context())
      checkGrammar(whole)
      const streamed = stream([...pieces.map((piece) => frame([piece])), frame([], stop)])
      expect(fold(streamed)).toEqual(fold(whole))
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 5000 : 150, seed: 3 },
  )
})
