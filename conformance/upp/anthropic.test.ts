// What only Anthropic does. Bodies follow its documentation and SDK types; none is recorded.
import type { JsonObject } from '@skein/base'
import { llm, StreamEventType, UserMessage, type StreamEvent } from '@skein/ai'
import { anthropic } from '@skein/ai/anthropic'
import { describe, expect, test } from 'vitest'
import { exchange, type Reply } from './support/exchange.ts'

const model = anthropic('claude-x')
const answer = (content: JsonObject[], more: JsonObject = {}): Reply => ({
  json: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-x-1',
    content,
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 3, cache_read_input_tokens: 4, output_tokens: 2 },
    ...more,
  },
})
const add = {
  name: 'add',
  description: 'Adds.',
  parameters: { type: 'object', properties: { a: { type: 'number' } } },
  run: ({ a }: { a: number }) => a + 1,
}
const thinking = { type: 'thinking', thinking: 'Hm', signature: 'SIG' }
const redacted = { type: 'redacted_thinking', data: 'R' }
const call = { type: 'tool_use', id: 'toolu_1', name: 'add', input: { a: 1 } }

describe('a turn with a tool', () => {
  const replies = [
    answer([thinking, redacted, { type: 'text', text: 'Let me add.' }, call], {
      stop_reason: 'tool_use',
    }),
    answer([{ type: 'text', text: 'Two.' }]),
  ]

  test('UPP-057 UPP-059 UPP-146 goes out in the format of the API, thinking included', async () => {
    const { config, requests } = exchange(...replies)
    const turn = await llm({ model, config, system: 'Be brief.', tools: [add] }).generate('1 + 1?')
    expect(turn.response.text).toBe('Two.')
    expect(turn.usage).toMatchObject({ inputTokens: 14, outputTokens: 4, cacheReadTokens: 8 })
    const [first, second] = requests
    expect(first?.url.href).toBe('https://api.anthropic.com/v1/messages')
    expect(first?.headers.get('x-api-key')).toBe('key-4711')
    expect(first?.headers.get('anthropic-version')).toBe('2023-06-01')
    expect(first?.headers.has('anthropic-beta')).toBe(false)
    const user = { role: 'user', content: [{ type: 'text', text: '1 + 1?' }] }
    const body = {
      model: 'claude-x',
      max_tokens: 4096,
      system: 'Be brief.',
      tools: [{ name: 'add', description: 'Adds.', input_schema: add.parameters }],
      messages: [user],
    }
    expect(first?.body).toEqual(body)
    expect(second?.body).toEqual({
      ...body,
      messages: [
        user,
        {
          role: 'assistant',
          content: [thinking, redacted, { type: 'text', text: 'Let me add.' }, call],
        },
        {
          role: 'user',
          content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: '2' }],
        },
      ],
    })
  })

  test('UPP-058 UPP-061 the answer is a message with the vendor data in its namespace', async () => {
    const { config } = exchange(...replies)
    const turn = await llm({ model, config, tools: [add] }).generate('1 + 1?')
    const [, message] = turn.messages
    expect(message).toMatchObject({
      type: 'assistant',
      content: [
        { type: 'reasoning', text: 'Hm' },
        { type: 'reasoning', text: '' },
        { type: 'text', text: 'Let me add.' },
      ],
      toolCalls: [{ toolCallId: 'toolu_1', toolName: 'add', arguments: { a: 1 } }],
      metadata: { anthropic: { id: 'msg_1', model: 'claude-x-1' } },
    })
    expect(Object.keys(message?.metadata ?? {})).toEqual(['anthropic'])
  })
})

test('UPP-062 UPP-157 blocks and fields no one knows come back as they were', async () => {
  const content = [
    { type: 'text', text: 'Blue', citations: [{ type: 'char_location', news: { a: [null] } }] },
    { type: 'block_of_the_future', payload: { deep: [1, { x: null }] } },
    { ...call, caller: { type: 'code_execution_20260120', tool_id: 'srv' } },
  ]
  const { config, requests } = exchange(answer(content), answer([]))
  const { messages } = await llm({
    model,
    config,
    tools: [add],
    toolStrategy: { maxIterations: 0 },
  }).generate('Sky?')
  const stored = JSON.parse(JSON.stringify(messages)) as typeof messages
  expect(stored[1]?.metadata).toEqual(messages[1]?.metadata)
  const foreign = { openai: { id: 'x' } }
  const asked = new UserMessage('And now?', { metadata: foreign })
  const turn = await llm({ model, config, tools: [add] }).generate([...messages], asked)
  const [, assistant] = requests[1]!.body['messages'] as { content: JsonObject[] }[]
  expect(assistant?.content).toEqual(content)
  expect(turn.messages[0]?.metadata).toEqual(foreign)
})

describe('server tools', () => {
  const use = { type: 'server_tool_use', id: 'srv_1', name: 'web_search', input: { query: 'sky' } }
  const found = {
    type: 'web_search_tool_result',
    tool_use_id: 'srv_1',
    content: [{ type: 'web_search_result', url: 'https://x', encrypted_content: 'E' }],
  }

  test('UPP-123 travel in params.tools next to function tools; their blocks are content', async () => {
    const search = { type: 'web_search_20260318', name: 'web_search', max_uses: 1 }
    const { config, requests } = exchange(answer([use, found, { type: 'text', text: 'Blue.' }]))
    const params = { tools: [search] }
    const { response } = await llm({ model, config, params, tools: [add] }).generate('Sky?')
    expect(requests[0]?.body['tools']).toEqual([
      { name: 'add', description: 'Adds.', input_schema: add.parameters },
      search,
    ])
    expect(
      response.content.map((block) => (block.type === 'native' ? block.name : block.type)),
    ).toEqual(['server_tool_use', 'web_search_tool_result', 'text'])
    expect(response.text).toBe('Blue.')
  })

  test('a paused turn continues with the same conversation', async () => {
    const { config, requests } = exchange(
      answer([use], { stop_reason: 'pause_turn' }),
      answer([found, { type: 'text', text: 'Blue.' }]),
    )
    const turn = await llm({ model, config }).generate('Sky?')
    expect(turn).toMatchObject({ cycles: 2, stopReason: 'end_turn' })
    expect(requests[1]?.body['messages']).toMatchObject([
      { role: 'user' },
      { role: 'assistant', content: [use] },
    ])
  })
})

test('UPP-124 UPP-147 structure is output_config.format: no tool is forced, none is left open', async () => {
  const structure = { type: 'object', properties: { age: { type: 'integer' } }, required: ['age'] }
  const { config, requests } = exchange(answer([{ type: 'text', text: '{"age":30}' }]))
  const turn = await llm({ model, config, structure, tools: [add] }).generate('John is 30.')
  expect(turn.data).toEqual({ age: 30 })
  expect(requests[0]?.body).toMatchObject({
    output_config: {
      format: { type: 'json_schema', schema: { ...structure, additionalProperties: false } },
    },
  })
  expect(requests[0]?.body).not.toHaveProperty('tool_choice')
})

const stream: Reply = {
  events: [
    {
      type: 'message_start',
      message: { id: 'msg_1', model: 'claude-x-1', content: [], usage: { input_tokens: 3 } },
    },
    { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 'S' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'ping' },
    { type: 'content_block_start', index: 1, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'Hel' } },
    { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'lo' } },
    { type: 'content_block_stop', index: 1 },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
    { type: 'message_stop' },
  ],
}

test('UPP-145 UPP-089 a stream is the same message, and a signature without text is kept', async () => {
  const { config, requests } = exchange(stream)
  const result = llm({ model, config }).stream('Hi')
  const events: StreamEvent[] = []
  for await (const event of result) events.push(event)
  expect(events.map(({ type, index }) => `${type} ${index}`)).toEqual([
    'message_start 0',
    'content_block_start 0',
    'content_block_stop 0',
    'content_block_start 1',
    'text_delta 1',
    'text_delta 1',
    'content_block_stop 1',
    'message_stop 0',
  ])
  expect(events.every(({ type }) => Object.values(StreamEventType).includes(type))).toBe(true)
  expect(requests[0]?.body['stream']).toBe(true)
  expect((await result.turn).response.content).toEqual([
    {
      type: 'reasoning',
      text: '',
      metadata: {
        anthropic: {
          api: 'anthropic-messages',
          native: { type: 'thinking', signature: 'S' },
        },
      },
    },
    { type: 'text', text: 'Hello' },
  ])
})

describe('errors', () => {
  const failed = (type: string, message: string) => ({
    type: 'error',
    error: { type, message },
    request_id: 'req_1',
  })

  test('UPP-060 UPP-036 carry code, type and request id', async () => {
    const tooLong = failed('invalid_request_error', 'prompt is too long: 9 tokens > 8 maximum')
    const { config } = exchange({ status: 400, json: tooLong })
    await expect(llm({ model, config }).generate('Hi')).rejects.toMatchObject({
      code: 'CONTEXT_LENGTH_EXCEEDED',
      statusCode: 400,
      vendorType: 'invalid_request_error',
      requestId: 'req_1',
      provider: 'anthropic',
      modality: 'llm',
    })
  })

  test('UPP-060 an overload inside a stream fails it, with what came before', async () => {
    const events = [...stream.events!.slice(0, 7), failed('overloaded_error', 'Overloaded')]
    const { config } = exchange({ events })
    const { turn } = llm({ model, config }).stream('Hi')
    await expect(turn).rejects.toMatchObject({
      code: 'PROVIDER_ERROR',
      vendorType: 'overloaded_error',
      turn: { response: { text: 'Hel' } },
    })
  })
})

test('UPP-148 UPP-071 audio and video are refused, images and documents are not', async () => {
  const { config, requests } = exchange(answer([]), answer([]))
  const instance = llm({ model, config })
  expect(instance.capabilities).toMatchObject({ audioInput: false, videoInput: false })
  const audio = { type: 'audio' as const, data: new Uint8Array(1), mimeType: 'audio/wav' }
  await expect(instance.generate(audio)).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
  expect(requests).toHaveLength(0)
  const source = { type: 'url' as const, url: 'https://x/y' }
  await instance.generate({ type: 'image', source, mimeType: 'image/png' })
  await instance.generate({ type: 'document', source, mimeType: 'application/pdf', title: 'T' })
  expect(requests.map(({ body }) => (body['messages'] as JsonObject[])[0]?.['content'])).toEqual([
    [{ type: 'image', source }],
    [{ type: 'document', source, title: 'T' }],
  ])
})
