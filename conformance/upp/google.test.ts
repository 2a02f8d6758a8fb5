// What only Google does. Bodies follow its documentation and SDK types; none is recorded.
import type { JsonObject } from '@skein/base'
import { AssistantMessage, llm, ToolResultMessage, UserMessage, type StreamEvent } from '@skein/ai'
import { google } from '@skein/ai/google'
import { describe, expect, test } from 'vitest'
import { exchange, type Reply } from './support/exchange.ts'

const model = google('gemini-2.5-x')
const frame = (
  parts: JsonObject[],
  candidate: JsonObject = { finishReason: 'STOP' },
): JsonObject => ({
  candidates: [{ content: { role: 'model', parts }, ...candidate }],
  usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 2, thoughtsTokenCount: 9 },
  modelVersion: 'gemini-x-1',
  responseId: 'r1',
})
const answer = (...given: Parameters<typeof frame>): Reply => ({ json: frame(...given) })
const add = {
  name: 'add',
  description: 'Adds.',
  parameters: { type: 'object', properties: { a: { type: 'number' } } },
  run: ({ a }: { a: number }) => [a + 1],
}

describe('a turn with tools', () => {
  const thought = { text: 'Hm', thought: true }
  const parts = [
    thought,
    { functionCall: { name: 'add', args: { a: 1 } }, thoughtSignature: 'SIG' },
    { functionCall: { name: 'add', args: { a: 2 } } },
  ]

  test('UPP-057 UPP-059 UPP-146 goes out in the format of the API: one entry per step', async () => {
    const { config, requests } = exchange(answer(parts), answer([{ text: 'Two, three.' }]))
    const turn = await llm({ model, config, system: 'Be brief.', tools: [add] }).generate('Add!')
    expect(turn.response.text).toBe('Two, three.')
    expect(turn.usage).toMatchObject({ inputTokens: 10, outputTokens: 22, reasoningTokens: 18 })
    const [first, second] = requests
    expect(first?.url.href).toBe(
      'https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-x:generateContent',
    )
    expect(first?.headers.get('x-goog-api-key')).toBe('key-4711')
    const user = { role: 'user', parts: [{ text: 'Add!' }] }
    const body = {
      systemInstruction: { parts: [{ text: 'Be brief.' }] },
      tools: [
        {
          functionDeclarations: [
            { name: 'add', description: 'Adds.', parametersJsonSchema: add.parameters },
          ],
        },
      ],
      contents: [user],
    }
    expect(first?.body).toEqual(body)
    expect(second?.body).toEqual({
      ...body,
      contents: [
        user,
        { role: 'model', parts },
        {
          role: 'user',
          parts: [
            { functionResponse: { name: 'add', response: { output: [2] } } },
            { functionResponse: { name: 'add', response: { output: [3] } } },
          ],
        },
      ],
    })
  })

  test('UPP-058 UPP-061 calls without ids get one each; vendor data has its namespace', async () => {
    const { config } = exchange(answer(parts), answer([{ text: 'Done.' }]))
    const turn = await llm({ model, config, tools: [add] }).generate('Add!')
    const [, message] = turn.messages
    const ids = turn.toolExecutions.map(({ toolCallId }) => toolCallId)
    expect(new Set(ids).size).toBe(2)
    expect(message?.metadata).toMatchObject({ google: { id: 'r1', model: 'gemini-x-1' } })
    expect(message).toMatchObject({ content: [{ type: 'reasoning', text: 'Hm' }] })
  })
})

test('UPP-062 UPP-157 parts and fields no one knows come back as they were', async () => {
  const parts = [
    { text: 'A', thoughtSignature: 'S', partMetadata: { a: [null] } },
    { partOfTheFuture: { deep: [1, { x: null }] } },
    { executableCode: { code: '1' } },
    { inlineData: { mimeType: 'image/png', data: 'AQID' }, thoughtSignature: 'S2' },
  ]
  const grounding = { groundingMetadata: { webSearchQueries: ['q'] } }
  const { config, requests } = exchange(
    answer(parts, { finishReason: 'STOP', ...grounding }),
    answer([]),
  )
  const { messages, response } = await llm({ model, config }).generate('Hi')
  expect(response.metadata?.['google']).toMatchObject(grounding)
  const foreign = { openai: { id: 'x' } }
  const asked = new UserMessage('And?', { metadata: foreign })
  const turn = await llm({ model, config }).generate([...messages], asked)
  expect(requests[1]?.body).toMatchObject({ contents: [{}, { role: 'model', parts }, {}] })
  expect(turn.messages[0]?.metadata).toEqual(foreign)
})

test('UPP-123 UPP-004 native tools and top-level parameters keep their place', async () => {
  const params = {
    tools: [{ googleSearch: {} }],
    safetySettings: [{ category: 'C', threshold: 'T' }],
    temperature: 0,
    generationConfig: { topK: 1 },
  }
  const { config, requests } = exchange(answer([{ text: 'ok' }]))
  await llm({ model, config, params, tools: [add] }).generate('Hi')
  expect(requests[0]?.body).toMatchObject({
    tools: [{ functionDeclarations: [{ name: 'add' }] }, { googleSearch: {} }],
    safetySettings: params.safetySettings,
    generationConfig: { temperature: 0, topK: 1 },
  })
})

test('UPP-124 UPP-147 structure is a JSON Schema in generationConfig', async () => {
  const structure = { type: 'object', properties: { age: { $ref: '#/$defs/n' } }, $defs: { n: {} } }
  const { config, requests } = exchange(answer([{ text: '{"age"' }, { text: ':30}' }]))
  const turn = await llm({ model, config, structure }).generate('John is 30.')
  expect(turn.data).toEqual({ age: 30 })
  expect(requests[0]?.body['generationConfig']).toEqual({
    responseMimeType: 'application/json',
    responseJsonSchema: structure,
  })
})

test('UPP-145 UPP-089 a stream has blocks with starts and stops; the key is not in its address', async () => {
  const events = [
    frame([{ text: 'Hm', thought: true }], {}),
    frame([{ text: 'Hel' }], {}),
    frame([{ text: 'lo' }, { functionCall: { name: 'add', args: { a: 1 } } }], {}),
    frame([]),
  ]
  const { config, requests } = exchange({ events })
  const toolStrategy = { maxIterations: 0 }
  const seen: StreamEvent[] = []
  const result = llm({ model, config, tools: [add], toolStrategy }).stream('Hi')
  for await (const event of result) seen.push(event)
  expect(seen.map(({ type, index }) => `${type} ${index}`)).toEqual([
    'message_start 0',
    'content_block_start 0',
    'reasoning_delta 0',
    'content_block_stop 0',
    'content_block_start 1',
    'text_delta 1',
    'text_delta 1',
    'content_block_stop 1',
    'content_block_start 2',
    'tool_call_delta 2',
    'content_block_stop 2',
    'message_stop 0',
  ])
  expect(requests[0]?.url.pathname).toBe('/v1beta/models/gemini-2.5-x:streamGenerateContent')
  expect(requests[0]?.url.search).toBe('?alt=sse')
  expect(await result.turn).toMatchObject({ stopReason: 'tool_use', rawStopReason: 'STOP' })
})

describe('errors', () => {
  test('UPP-060 UPP-036 a blocked prompt, a quota of the day, a key that is none', async () => {
    const day = {
      code: 429,
      status: 'RESOURCE_EXHAUSTED',
      message: 'Quota exceeded',
      details: [
        {
          '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
          violations: [{ quotaId: 'GenerateRequestsPerDayPerProjectPerModel' }],
        },
      ],
    }
    const key = { code: 400, status: 'INVALID_ARGUMENT', message: 'API key not valid.' }
    const { config } = exchange(
      { json: { promptFeedback: { blockReason: 'SAFETY' } } },
      { status: 429, json: [{ error: day }] },
      { status: 400, json: { error: key } },
      { json: { candidates: [] } },
    )
    const instance = llm({ model, config })
    await expect(instance.generate('1')).rejects.toMatchObject({ code: 'CONTENT_FILTERED' })
    await expect(instance.generate('2')).rejects.toMatchObject({
      code: 'QUOTA_EXCEEDED',
      message: 'Quota exceeded',
      vendorType: 'RESOURCE_EXHAUSTED',
      statusCode: 429,
    })
    await expect(instance.generate('3')).rejects.toMatchObject({ code: 'AUTHENTICATION_FAILED' })
    await expect(instance.generate('4')).rejects.toMatchObject({ code: 'INVALID_RESPONSE' })
  })

  test('a stop by the filter is reported, not thrown', async () => {
    const { config } = exchange({ json: { candidates: [{ finishReason: 'SAFETY' }] } })
    const turn = await llm({ model, config }).generate('Hi')
    expect(turn).toMatchObject({ stopReason: 'content_filter', rawStopReason: 'SAFETY' })
  })
})

test('UPP-148 UPP-071 every medium goes out, by data or by address', async () => {
  const { config, requests } = exchange(answer([]))
  const data = new Uint8Array([1, 2, 3])
  await llm({ model, config }).generate(
    new UserMessage([
      { type: 'image', source: { type: 'bytes', data }, mimeType: 'image/png' },
      {
        type: 'document',
        source: { type: 'url', url: 'https://x/y' },
        mimeType: 'application/pdf',
      },
      { type: 'audio', data, mimeType: 'audio/wav' },
      { type: 'video', data, mimeType: 'video/mp4' },
    ]),
  )
  const [content] = requests[0]!.body['contents'] as JsonObject[]
  expect(content?.['parts']).toEqual([
    { inlineData: { mimeType: 'image/png', data: 'AQID' } },
    { fileData: { mimeType: 'application/pdf', fileUri: 'https://x/y' } },
    { inlineData: { mimeType: 'audio/wav', data: 'AQID' } },
    { inlineData: { mimeType: 'video/mp4', data: 'AQID' } },
  ])
})

test('an answer cut by the token limit of one request is resumed', async () => {
  const { config, requests } = exchange(
    answer([{ text: 'Once ' }], { finishReason: 'CONTINUATION', continuationToken: 'T1' }),
    answer([{ text: 'upon.' }]),
  )
  const turn = await llm({ model, config }).generate('Tell')
  expect(turn.cycles).toBe(2)
  expect(requests[1]?.body).toEqual({
    continuationToken: 'T1',
    contents: [{ role: 'user', parts: [{ text: 'Tell' }] }],
  })
})

test('models that demand a signature get a stand-in for calls of other vendors', async () => {
  const { config, requests } = exchange(answer([]), answer([]))
  const history = [
    new UserMessage('Hi'),
    new AssistantMessage('', [{ toolCallId: 'toolu_1', toolName: 'add', arguments: {} }]),
    new ToolResultMessage([{ toolCallId: 'toolu_1', result: 1 }]),
  ]
  await llm({ model: google('gemini-3-pro'), config }).generate(history, 'Continue')
  await llm({ model, config }).generate(history, 'Continue')
  const [newer, older] = requests.map(
    ({ body }) => (body['contents'] as JsonObject[])[1]?.['parts'],
  )
  const functionCall = { id: 'toolu_1', name: 'add', args: {} }
  expect(newer).toEqual([{ functionCall, thoughtSignature: 'skip_thought_signature_validator' }])
  expect(older).toEqual([{ functionCall }])
})
