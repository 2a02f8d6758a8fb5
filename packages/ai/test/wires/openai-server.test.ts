import type { JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import type { StreamEvent } from '../../src/contract/event.ts'
import { plain } from './arbitrary-message.ts'
import { anthropicMessagesServer } from '../../src/wires/anthropic-messages/server.ts'
import { googleGenerateServer } from '../../src/wires/google-generate/server.ts'
import { ollamaChatServer } from '../../src/wires/ollama-chat/server.ts'
import { openaiChatServer } from '../../src/wires/openai-chat/server.ts'
import { openaiResponsesServer } from '../../src/wires/openai-responses/server.ts'

const route = { path: '', search: '' }
const chat = (fields: JsonObject) =>
  openaiChatServer.decodeRequest({ model: 'm', ...fields }, route)
const responses = (fields: JsonObject) =>
  openaiResponsesServer.decodeRequest({ model: 'm', ...fields }, route)
const invalid = (message: string) =>
  expect.objectContaining({ code: 'INVALID_REQUEST', message: expect.stringContaining(message) })

describe('openai-chat', () => {
  const user = (content: JsonObject[] | string) => ({ role: 'user', content })

  test('system messages at the start are the system prompt, later ones are told by the user', () => {
    const { system, messages } = chat({
      messages: [
        { role: 'system', content: 'A' },
        { role: 'developer', content: [{ type: 'text', text: 'B' }] },
        user('hi'),
        { role: 'system', content: 'C' },
      ],
    })
    expect(system).toBe('A\n\nB')
    expect(plain(messages)).toEqual([
      { type: 'user', content: [{ type: 'text', text: 'hi' }] },
      { type: 'user', content: [{ type: 'text', text: 'C' }] },
    ])
  })

  test('parts, with options of the vendor', () => {
    const { messages } = chat({
      messages: [
        user([
          { type: 'text', text: 'a', prompt_cache_breakpoint: { mode: 'explicit' } },
          { type: 'image_url', image_url: { url: 'https://x.test/i', detail: 'low' } },
          { type: 'input_audio', input_audio: { data: 'AQI=', format: 'mp3' } },
          { type: 'video_url', video_url: { url: 'data:video/mp4;base64,AQI=' } },
        ]),
      ].map((message) => ({ ...message, name: 'Ada' })),
    })
    expect(messages[0]).toMatchObject({
      metadata: { openai: { name: 'Ada' } },
      content: [
        { type: 'text', metadata: { openai: { prompt_cache_breakpoint: { mode: 'explicit' } } } },
        { type: 'image', source: { type: 'url' }, metadata: { openai: { detail: 'low' } } },
        { type: 'audio', data: new Uint8Array([1, 2]), mimeType: 'audio/mpeg' },
        { type: 'video', mimeType: 'video/mp4' },
      ],
    })
  })

  test('answers with reasoning, refusal, custom calls and broken arguments', () => {
    const { messages } = chat({
      messages: [
        {
          role: 'assistant',
          content: null,
          reasoning_content: 'r',
          refusal: 'no',
          tool_calls: [
            { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":' } },
            { id: 'b', type: 'custom', custom: { name: 'g', input: 'free' } },
          ],
        },
        { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: 'one' }] },
        { role: 'tool', tool_call_id: 'b', content: 'two' },
      ],
    })
    expect(messages).toMatchObject([
      {
        content: [
          { type: 'reasoning', text: 'r' },
          { type: 'text', text: 'no' },
        ],
        toolCalls: [
          { toolCallId: 'a', arguments: {}, invalidArguments: { text: '{"x":' } },
          { toolCallId: 'b', arguments: { input: 'free' } },
        ],
      },
      {
        results: [
          { toolCallId: 'a', toolName: 'f', result: 'one' },
          { toolCallId: 'b', toolName: 'g', result: 'two' },
        ],
      },
    ])
  })

  test('what is not ours stays in params', () => {
    const native = { type: 'web_search' }
    const { params, tools, includeUsage, stream } = chat({
      messages: [],
      temperature: 0,
      stream: true,
      stream_options: { include_usage: true, include_obfuscation: false },
      response_format: { type: 'json_object' },
      tools: [native, { type: 'function', function: { name: 'f', strict: true } }],
    })
    expect(params).toEqual({
      temperature: 0,
      stream_options: { include_obfuscation: false },
      response_format: { type: 'json_object' },
      tools: [native],
    })
    expect(tools).toMatchObject([{ name: 'f', metadata: { openai: { strict: true } } }])
    expect({ includeUsage, stream }).toEqual({ includeUsage: true, stream: true })
  })

  test.each([
    [{ messages: 7 }, '"messages"'],
    [{ messages: [7] }, '"messages[0]"'],
    [{ messages: [{ role: 'king' }] }, '"messages[0].role"'],
    [{ messages: [user([{ type: 'smell' }])] }, '"messages[0].content[0].type"'],
    [{ messages: [user([{ type: 'image_url' }])] }, 'image_url.url'],
    [{ messages: [user([{ type: 'file', file: { filename: 'x' } }])] }, 'file_data'],
    [{ messages: [user([{ type: 'input_audio', input_audio: { data: '!' } }])] }, 'cannot be read'],
    [{ messages: [{ role: 'tool', content: 'x' }] }, 'tool_call_id'],
    [{ messages: [{ role: 'assistant', tool_calls: [{}] }] }, 'tool_calls[0]'],
    [{ messages: [], tools: [{ type: 'function' }] }, 'tools[0].function.name'],
    [{ messages: [], model: '' }, '"model"'],
  ] as [JsonObject, string][])('%j is refused by name', (fields, name) => {
    expect(() => chat(fields)).toThrow(invalid(name))
  })
})

describe('openai-responses', () => {
  test('text alone, and instructions with system messages', () => {
    expect(plain(responses({ input: 'hi' }).messages)).toEqual([
      { type: 'user', content: [{ type: 'text', text: 'hi' }] },
    ])
    const { system } = responses({
      instructions: 'A',
      input: [
        { role: 'developer', content: 'B' },
        { role: 'user', content: 'hi' },
      ],
    })
    expect(system).toBe('A\n\nB')
  })

  test('items of one answer are one message, verbatim and in order', () => {
    const items = [
      { type: 'reasoning', id: 'rs', summary: [{ type: 'summary_text', text: 'r' }] },
      { type: 'function_call', id: 'fc', call_id: 'c', name: 'f', arguments: '{"a":1}' },
      {
        type: 'message',
        id: 'm',
        role: 'assistant',
        content: [{ type: 'output_text', text: 't', annotations: [] }],
      },
      { type: 'web_search_call', id: 'ws' },
    ]
    const { messages } = responses({
      input: [
        { role: 'user', content: [{ type: 'input_text', text: 'q' }] },
        ...items,
        { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'o' }] },
      ],
    })
    expect(messages.map((message) => message.type)).toEqual(['user', 'assistant', 'tool_result'])
    expect(messages[1]).toMatchObject({
      content: [
        { type: 'reasoning', text: 'r', metadata: { openai: { native: items[0] } } },
        { type: 'text', text: 't', metadata: { openai: { item: { id: 'm' } } } },
        { type: 'native', name: 'web_search_call' },
      ],
      toolCalls: [{ toolCallId: 'c', arguments: { a: 1 } }],
      metadata: { openai: { order: ['block', 'call', 'block', 'block'] } },
    })
    expect(messages[2]).toMatchObject({
      results: [{ toolCallId: 'c', toolName: 'f', result: [{ type: 'text', text: 'o' }] }],
    })
  })

  test.each([
    [{}, '"input"'],
    [{ input: [{ type: 'item_reference', id: 'x' }] }, '"input[0]"'],
    [{ input: [{ role: 'king', content: '' }] }, '"input[0].role"'],
    [{ input: [{ role: 'user', content: [{ type: 'smell' }] }] }, 'content[0].type'],
    [{ input: [{ role: 'user', content: [{ type: 'input_file', filename: 'x' }] }] }, 'content[0]'],
    [{ input: [{ type: 'function_call', name: 'f' }] }, '"input[0]"'],
    [{ input: [{ type: 'function_call_output' }] }, 'call_id'],
    [{ input: [], tools: [{ type: 'function' }] }, 'tools[0].name'],
  ] as [JsonObject, string][])('%j is refused by name', (fields, name) => {
    expect(() => responses(fields)).toThrow(invalid(name))
  })
})

describe('the stream of a response', () => {
  const request = responses({ input: 'hi' })
  const usage = {
    inputTokens: 3,
    outputTokens: 2,
    totalTokens: 5,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  }
  const events: readonly StreamEvent[] = [
    { type: 'message_start', index: 0, delta: { provider: 'x' } },
    { type: 'content_block_start', index: 0, delta: { block: 'reasoning' } },
    { type: 'reasoning_delta', index: 0, delta: { text: 'h' } },
    { type: 'reasoning_delta', index: 0, delta: { text: 'm' } },
    { type: 'content_block_stop', index: 0, delta: {} },
    { type: 'content_block_start', index: 1, delta: { block: 'text' } },
    { type: 'text_delta', index: 1, delta: { text: 'a' } },
    { type: 'text_delta', index: 1, delta: { text: 'b' } },
    { type: 'content_block_stop', index: 1, delta: {} },
    {
      type: 'content_block_start',
      index: 2,
      delta: { block: 'tool_call', toolCallId: 'c', toolName: 'f' },
    },
    {
      type: 'tool_call_delta',
      index: 2,
      delta: { toolCallId: 'c', toolName: 'f', argumentsJson: '{"n":' },
    },
    {
      type: 'tool_call_delta',
      index: 2,
      delta: { toolCallId: 'c', toolName: 'f', argumentsJson: '1}' },
    },
    { type: 'content_block_stop', index: 2, delta: {} },
    { type: 'message_stop', index: 0, delta: { stopReason: 'tool_use', usage } },
  ]

  test('tells every item with its beginning, its pieces and its end', () => {
    const encoder = openaiResponsesServer.createEncoder({ request, id: '7', createdAt: 0 })
    const text = events.map((event) => encoder.push(event)).join('') + encoder.end()
    const frames = text
      .split('\n\n')
      .filter((frame) => frame !== '')
      .map((frame) => JSON.parse(/^data: (.*)$/m.exec(frame)![1]!) as JsonObject)
    expect(frames.map(({ type }) => String(type).replace('response.', ''))).toEqual([
      'created',
      'in_progress',
      'output_item.added',
      'reasoning_summary_part.added',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.delta',
      'reasoning_summary_text.done',
      'reasoning_summary_part.done',
      'output_item.done',
      'output_item.added',
      'content_part.added',
      'output_text.delta',
      'output_text.delta',
      'output_text.done',
      'content_part.done',
      'output_item.done',
      'output_item.added',
      'function_call_arguments.delta',
      'function_call_arguments.delta',
      'function_call_arguments.done',
      'output_item.done',
      'completed',
    ])
    expect(frames.map(({ sequence_number }) => sequence_number)).toEqual(frames.map((_, at) => at))
    const of = (type: string) => frames.filter((frame) => frame['type'] === `response.${type}`)
    const added = of('output_item.added').map(({ item }) => item as JsonObject)
    const [reasoning, message, call] = added.map(({ id }) => id)
    expect(of('reasoning_summary_text.delta')).toMatchObject([
      { item_id: reasoning, output_index: 0, summary_index: 0, delta: 'h' },
      { item_id: reasoning, output_index: 0, summary_index: 0, delta: 'm' },
    ])
    expect(of('reasoning_summary_text.done')).toMatchObject([{ item_id: reasoning, text: 'hm' }])
    expect(of('output_text.delta')).toMatchObject([
      { item_id: message, output_index: 1, content_index: 0, delta: 'a' },
      { item_id: message, output_index: 1, content_index: 0, delta: 'b' },
    ])
    expect(of('output_text.done')).toMatchObject([{ item_id: message, text: 'ab' }])
    expect(of('function_call_arguments.done')).toMatchObject([
      { item_id: call, output_index: 2, arguments: '{"n":1}' },
    ])
    const items = [
      { type: 'reasoning', id: reasoning, summary: [{ type: 'summary_text', text: 'hm' }] },
      { type: 'message', id: message, role: 'assistant', content: [{ type: 'output_text', text: 'ab' }] }, // prettier-ignore
      { type: 'function_call', id: call, call_id: 'c', name: 'f', arguments: '{"n":1}', status: 'completed' }, // prettier-ignore
    ]
    expect(of('output_item.done').map(({ item }) => item)).toMatchObject(items)
    expect(of('completed')[0]!['response']).toMatchObject({
      status: 'completed',
      output: items,
      usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
    })
  })

  test('a whole answer is the response that the stream ends with', () => {
    const context = { request, id: '7', createdAt: 0 }
    const encoder = openaiResponsesServer.createEncoder(context)
    const last = events.map((event) => encoder.push(event)).at(-1)!
    const { response } = JSON.parse(/^data: (.*)$/m.exec(last)![1]!) as { response: JsonObject }
    expect(openaiResponsesServer.encodeResponse(events, context)).toEqual(response)
  })
})

describe('a structured answer, in every format of a server', () => {
  const usage = {
    inputTokens: 3,
    outputTokens: 2,
    totalTokens: 5,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  }
  const events: readonly StreamEvent[] = [
    { type: 'message_start', index: 0, delta: { provider: 'x' } },
    { type: 'content_block_start', index: 0, delta: { block: 'object' } },
    { type: 'object_delta', index: 0, delta: { text: '{"n":' } },
    { type: 'object_delta', index: 0, delta: { text: '41}' } },
    { type: 'content_block_stop', index: 0, delta: {} },
    { type: 'message_stop', index: 0, delta: { stopReason: 'end_turn', usage } },
  ]
  const servers = [
    [openaiChatServer, { model: 'm', messages: [] }],
    [openaiResponsesServer, { model: 'm', input: 'hi' }],
    [anthropicMessagesServer, { model: 'm', max_tokens: 1, messages: [] }],
    [googleGenerateServer, { contents: [] }],
    [ollamaChatServer, { model: 'm', messages: [] }],
  ] as const

  test.each(servers)('is its text, whole and streamed (%#)', (server, body) => {
    const path = '/v1beta/models/m:generateContent'
    const request = server.decodeRequest(body as JsonObject, { path, search: '' })
    const context = { request, id: '7', createdAt: 0 }
    const whole = JSON.stringify(server.encodeResponse(events, context))
    expect(whole).toContain('{\\"n\\":41}')
    const encoder = server.createEncoder(context)
    const streamed = events.map((event) => encoder.push(event)).join('') + encoder.end()
    expect(streamed).toContain('{\\"n\\":')
    expect(streamed).toContain('41}')
  })
})

describe('openai-responses items', () => {
  const first = (item: JsonObject) => responses({ input: [item] }).messages[0]

  test('an item without a type is a message; images are read with their data and format', () => {
    expect(
      first({ role: 'assistant', content: [{ type: 'output_text', text: 'a' }] }),
    ).toMatchObject({ type: 'assistant', content: [{ type: 'text', text: 'a' }] })
    const drawn = { type: 'image_generation_call', id: 'i', result: 'AQI=', output_format: 'webp' }
    expect(first(drawn)).toMatchObject({
      content: [
        {
          type: 'image',
          source: { type: 'bytes', data: new Uint8Array([1, 2]) },
          mimeType: 'image/webp',
          metadata: { openai: { native: { type: 'image_generation_call', id: 'i' } } },
        },
      ],
    })
    expect(first({ type: 'image_generation_call', id: 'i', result: null })).toMatchObject({
      content: [{ type: 'native', name: 'image_generation_call' }],
    })
  })

  test('images and files of a user, inline and by address', () => {
    const content = [
      { type: 'input_image', image_url: 'https://a.test/i', detail: 'low' },
      { type: 'input_image', image_url: 'data:image/gif;base64,AQI=' },
      { type: 'input_file', file_url: 'https://a.test/d', filename: 'd.pdf' },
      { type: 'input_file', file_data: 'data:text/csv;base64,AQI=', filename: 'e.csv' },
    ]
    expect(first({ role: 'user', content })).toMatchObject({
      content: [
        {
          type: 'image',
          source: { type: 'url', url: 'https://a.test/i' },
          mimeType: 'image/*',
          metadata: { openai: { detail: 'low' } },
        },
        { type: 'image', source: { type: 'base64', data: 'AQI=' }, mimeType: 'image/gif' },
        {
          type: 'document',
          source: { type: 'url', url: 'https://a.test/d' },
          mimeType: 'application/pdf',
          title: 'd.pdf',
        },
        {
          type: 'document',
          source: { type: 'base64', data: 'AQI=' },
          mimeType: 'text/csv',
          title: 'e.csv',
        },
      ],
    })
  })
})
