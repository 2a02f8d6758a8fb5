import { describe, expect, test } from 'vitest'
import { sequentialIds, type JsonObject, type JsonValue } from '@skein/base'
import { contextOf, fold, requestOf } from '../../../test/wires/wire-cases.ts'
import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
} from '../../contract/message.ts'
import type { LLMRequest } from '../../contract/provider.ts'
import type { RequestMode, Target } from '../wire.ts'
import type { GoogleDialect } from './types.ts'
import { googleGenerate } from './wire.ts'

const target: Target<GoogleDialect> = {
  provider: 'google',
  modelId: 'gemini-x',
  dialect: { unsignedCall: (modelId) => (modelId === 'gemini-3-x' ? 'skip' : undefined) },
}
const encode = (
  fields: Partial<LLMRequest> = {},
  mode: RequestMode = 'complete',
  to: Target<GoogleDialect> = target,
) => {
  const { body, ...rest } = googleGenerate.encodeRequest(requestOf(fields), to, mode)
  return { body: JSON.parse(body) as Record<string, JsonValue>, ...rest }
}
const contents = (messages: readonly Message[], to = target): JsonObject[] =>
  encode({ messages }, 'complete', to).body['contents'] as JsonObject[]

describe('the address and the body', () => {
  test('name model and mode, and nothing that was not asked for', () => {
    expect(encode().body).toEqual({ contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] })
    expect(encode().path).toBe('/models/gemini-x:generateContent')
    expect(encode({}, 'stream').path).toBe('/models/gemini-x:streamGenerateContent?alt=sse')
    const tuned = { ...target, modelId: 'tunedModels/a b' }
    expect(encode({}, 'complete', tuned).path).toBe('/tunedModels/a%20b:generateContent')
  })

  test('generation fields go into generationConfig, all others stay on top', () => {
    const params = {
      temperature: 0,
      thinkingConfig: { thinkingBudget: 1 },
      safetySettings: [{ category: 'C', threshold: 'T' }],
      labels: { a: 'b' },
      cachedContent: 'cachedContents/1',
      toolConfig: { functionCallingConfig: { mode: 'ANY' } },
      serviceTier: 'flex',
      store: false,
      x_new: { deep: [null] },
      generationConfig: { topK: 3, temperature: 1, y_new: 2 },
    }
    const { generationConfig, temperature: _, thinkingConfig, ...top } = params
    expect(encode({ params }).body).toMatchObject({
      ...top,
      generationConfig: { thinkingConfig, ...generationConfig },
    })
    expect(encode({ params: { generationConfig } }).body['generationConfig']).toEqual(
      generationConfig,
    )
  })

  test('the system prompt comes before params.systemInstruction', () => {
    const systemInstruction = { parts: [{ text: 'B' }] }
    expect(encode({ system: 'A' }).body['systemInstruction']).toEqual({ parts: [{ text: 'A' }] })
    expect(
      encode({ system: 'A', params: { systemInstruction } }).body['systemInstruction'],
    ).toEqual({
      parts: [{ text: 'A' }, { text: 'B' }],
    })
  })

  test('structure is a JSON Schema, whole', () => {
    const structure = { type: 'array', items: { $ref: '#/$defs/x' }, $defs: { x: { minimum: 1 } } }
    expect(encode({ structure, params: { topK: 1 } }).body['generationConfig']).toEqual({
      topK: 1,
      responseMimeType: 'application/json',
      responseJsonSchema: structure,
    })
    const own = { responseSchema: { type: 'OBJECT' } }
    expect(encode({ structure, params: own }).body['generationConfig']).toEqual(own)
  })

  test('tools keep their schemas and stand beside native ones', () => {
    const parameters = { type: 'object', anyOf: [{ required: ['a'] }] }
    const tool = { name: 'add', description: 'Adds.', parameters, run: () => 0 }
    expect(
      encode({ tools: [tool], params: { tools: [{ googleSearch: {} }] } }).body['tools'],
    ).toEqual([
      {
        functionDeclarations: [
          { name: 'add', description: 'Adds.', parametersJsonSchema: parameters },
        ],
      },
      { googleSearch: {} },
    ])
    const params = { tools: [{ functionDeclarations: [{ name: 'add' }] }] }
    expect(() => encode({ tools: [tool], params })).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST' }),
    )
  })
})

test('media of every kind', () => {
  const data = new Uint8Array([1, 2, 3])
  const message = new UserMessage([
    { type: 'image', source: { type: 'bytes', data }, mimeType: 'image/png' },
    { type: 'image', source: { type: 'url', url: 'https://x/y' }, mimeType: 'image/png' },
    { type: 'document', source: { type: 'base64', data: 'AQID' }, mimeType: 'application/pdf' },
    { type: 'document', source: { type: 'text', data: 'abc' }, mimeType: 'text/plain' },
    { type: 'audio', data, mimeType: 'audio/wav' },
    {
      type: 'video',
      data,
      mimeType: 'video/mp4',
      metadata: { google: { videoMetadata: { fps: 1 } } },
    },
    { type: 'binary', data, mimeType: 'application/x' },
  ])
  expect(contents([message])[0]?.['parts']).toEqual([
    { inlineData: { mimeType: 'image/png', data: 'AQID' } },
    { fileData: { mimeType: 'image/png', fileUri: 'https://x/y' } },
    { inlineData: { mimeType: 'application/pdf', data: 'AQID' } },
    { inlineData: { mimeType: 'text/plain', data: 'YWJj' } },
    { inlineData: { mimeType: 'audio/wav', data: 'AQID' } },
    { inlineData: { mimeType: 'video/mp4', data: 'AQID' }, videoMetadata: { fps: 1 } },
    { inlineData: { mimeType: 'application/x', data: 'AQID' } },
  ])
})

describe('an answer sent back', () => {
  const parts = [
    { text: 'Hm', thought: true },
    { text: 'A' },
    { text: '', thoughtSignature: 'S0' },
    { functionCall: { name: 'add', args: { a: 1 } }, thoughtSignature: 'S1' },
    { functionCall: { id: 'given', name: 'now', args: {} } },
    { executableCode: { code: '1' } },
    { inlineData: { mimeType: 'image/png', data: 'AQID' }, thoughtSignature: 'S2' },
    { text: 'B' },
  ]
  const body = { candidates: [{ content: { parts }, finishReason: 'STOP' }] }
  const context = contextOf(target, requestOf({ ids: sequentialIds('made') }))
  const { content, toolCalls, metadata } = fold(googleGenerate.decodeResponse(body, context))
  const answer = new AssistantMessage(content, toolCalls, { metadata: metadata! })
  const results = new ToolResultMessage([
    { toolCallId: 'made1', result: [1, 2] },
    { toolCallId: 'given', result: null },
  ])
  const messages = [new UserMessage('Hi'), answer, results]

  test('is what came, in one entry, with all results in the next', () => {
    expect(contents(messages).slice(1)).toEqual([
      { role: 'model', parts },
      {
        role: 'user',
        parts: [
          { functionResponse: { name: 'add', response: { output: [1, 2] } } },
          { functionResponse: { id: 'given', name: 'now', response: { output: null } } },
        ],
      },
    ])
  })

  test('split and missing results are brought into one entry', () => {
    const one = new ToolResultMessage([{ toolCallId: 'given', result: 'x' }])
    const [, , entry, next] = contents([new UserMessage('Hi'), answer, one, new UserMessage('?')])
    expect(entry?.['parts']).toHaveLength(2)
    expect(entry).toMatchObject({
      parts: [{}, { functionResponse: { name: 'add', response: { error: expect.any(String) } } }],
    })
    expect(next).toEqual({ role: 'user', parts: [{ text: '?' }] })
  })

  test('calls of another vendor get the stand-in signature only where a model needs it', () => {
    const foreign = new AssistantMessage(
      [
        { type: 'reasoning', text: 'secret' },
        { type: 'native', name: 'web', metadata: { anthropic: {} } },
      ],
      [
        { toolCallId: 'toolu_1', toolName: 'add', arguments: {} },
        { toolCallId: 'toolu_2', toolName: 'add', arguments: {} },
      ],
    )
    const done = new ToolResultMessage([
      { toolCallId: 'toolu_1', result: 1 },
      { toolCallId: 'toolu_2', result: 2 },
    ])
    const history = [new UserMessage('Hi'), foreign, done]
    const call = (id: string) => ({ functionCall: { id, name: 'add', args: {} } })
    expect(contents(history)[1]?.['parts']).toEqual([call('toolu_1'), call('toolu_2')])
    expect(contents(history, { ...target, modelId: 'gemini-3-x' })[1]?.['parts']).toEqual([
      { ...call('toolu_1'), thoughtSignature: 'skip' },
      call('toolu_2'),
    ])
    expect(contents(history)[2]?.['parts']).toEqual([
      { functionResponse: { id: 'toolu_1', name: 'add', response: { output: 1 } } },
      { functionResponse: { id: 'toolu_2', name: 'add', response: { output: 2 } } },
    ])
  })

  test('one that asks for continuation is resumed by its token, not repeated', () => {
    const paused = (token: string) =>
      new AssistantMessage('part', undefined, {
        metadata: { google: { api: 'google-generate', continuationToken: token } },
      })
    const { body } = encode({ messages: [new UserMessage('Hi'), paused('t1'), paused('t2')] })
    expect(body).toEqual({
      continuationToken: 't2',
      contents: [{ role: 'user', parts: [{ text: 'Hi' }] }],
    })
    const later = encode({ messages: [new UserMessage('Hi'), paused('t1'), new UserMessage('?')] })
    expect(later.body['contents']).toHaveLength(3)
    expect(later.body).not.toHaveProperty('continuationToken')
  })
})

test.each<[string, unknown, boolean, JsonObject]>([
  ['an object', { a: 1 }, false, { a: 1 }],
  ['an object that looks like the wrapper', { error: 0 }, false, { output: { error: 0 } }],
  ['a string', 'x', false, { output: 'x' }],
  ['nothing', undefined, false, { output: null }],
  ['an error', 'boom', true, { error: 'boom' }],
  ['a date', { at: new Date(0) }, false, { at: '1970-01-01T00:00:00.000Z' }],
  ['bytes', new Uint8Array(9), false, { output: '[binary data, 9 bytes]' }],
])('the result of a tool that is %s', (_, result, isError, response) => {
  const call = new AssistantMessage('', [{ toolCallId: 'c', toolName: 'f', arguments: {} }])
  const results = new ToolResultMessage([{ toolCallId: 'c', result, isError }])
  const [, , entry] = contents([new UserMessage('Hi'), call, results])
  expect(entry?.['parts']).toEqual([{ functionResponse: { id: 'c', name: 'f', response } }])
})

test('media that a tool returns goes beside its text', () => {
  const call = new AssistantMessage('', [{ toolCallId: 'c', toolName: 'f', arguments: {} }])
  const result = [
    { type: 'text', text: 'Look' },
    { type: 'image', source: { type: 'base64', data: 'AQID' }, mimeType: 'image/png' },
  ]
  const [, , entry] = contents([
    new UserMessage('Hi'),
    call,
    new ToolResultMessage([{ toolCallId: 'c', result }]),
  ])
  expect(entry?.['parts']).toEqual([
    {
      functionResponse: {
        id: 'c',
        name: 'f',
        response: { output: 'Look' },
        parts: [{ inlineData: { mimeType: 'image/png', data: 'AQID' } }],
      },
    },
  ])
})

test('UPP-057 calls are joined with the model’s entries before them, because they must follow a user entry', () => {
  const sent = contents([
    new UserMessage('x'),
    new AssistantMessage('one'),
    new AssistantMessage('two', [{ toolCallId: 'c', toolName: 'f', arguments: { a: 1 } }]),
    new ToolResultMessage([{ toolCallId: 'c', toolName: 'f', result: 'r' }]),
    new AssistantMessage('three'),
    new AssistantMessage('four'),
  ])
  expect(sent.map(({ role, parts }) => [role, (parts as JsonObject[]).length])).toEqual([
    ['user', 1],
    ['model', 3],
    ['user', 1],
    ['model', 1],
    ['model', 1],
  ])
  expect(sent[1]!['parts']).toMatchObject([
    { text: 'one' },
    { text: 'two' },
    { functionCall: { name: 'f', args: { a: 1 } } },
  ])
})

test('UPP-147 a constant of the schema is an enum, if the API can express it', () => {
  const structure = {
    type: 'object',
    properties: { a: { const: 'x' }, b: { const: 7 }, c: { const: true }, d: { const: null } },
  }
  const { body, warnings } = encode({ structure })
  expect(body['generationConfig']).toMatchObject({
    responseJsonSchema: {
      properties: { a: { enum: ['x'] }, b: { enum: [7] }, c: { const: true }, d: { const: null } },
    },
  })
  expect(warnings.map(({ pointer }) => pointer)).toEqual([
    expect.stringContaining('/properties/c'),
    expect.stringContaining('/properties/d'),
  ])
})

test('UPP-005 a schema among the generation parameters is sent instead of the structure', () => {
  const structure = { type: 'object', properties: { a: { type: 'string' } } }
  for (const name of ['responseJsonSchema', 'responseSchema']) {
    const own = { [name]: { type: 'string' } }
    const { body } = encode({ structure, params: { generationConfig: own } })
    expect(body['generationConfig']).toEqual(own)
    expect(encode({ structure, params: own }).body['generationConfig']).toEqual(own)
  }
})
