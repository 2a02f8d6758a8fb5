import { describe, expect, test } from 'vitest'
import { encodeBase64, type JsonObject, type JsonValue } from '@skein/base'
import { contextOf, fold, requestOf } from '../../../test/wires/wire-cases.ts'
import { AssistantMessage, ToolResultMessage, UserMessage } from '../../contract/message.ts'
import type { LLMRequest } from '../../contract/provider.ts'
import type { RequestMode } from '../wire.ts'
import { anthropicMessages } from './wire.ts'

const target = { provider: 'anthropic', modelId: 'claude-x', dialect: { maxTokens: 4096 } }
const encode = (fields: Partial<LLMRequest> = {}, mode: RequestMode = 'complete') => {
  const { body, ...rest } = anthropicMessages.encodeRequest(requestOf(fields), target, mode)
  return { body: JSON.parse(body) as Record<string, JsonValue>, ...rest }
}
const contentOf = (fields: Partial<LLMRequest>, index = 0): JsonObject[] =>
  ((encode(fields).body['messages'] as JsonObject[])[index]?.['content'] ?? []) as JsonObject[]

const tool = {
  name: 'add',
  description: 'Adds.',
  parameters: { type: 'object', properties: { a: { $ref: '#/$defs/n' } }, $defs: { n: {} } },
  run: () => 0,
}

describe('the body', () => {
  test('holds only what the API demands when nothing was asked for', () => {
    const { body, path, headers } = encode()
    expect(body).toEqual({
      model: 'claude-x',
      max_tokens: 4096,
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }],
    })
    expect(path).toBe('/messages')
    expect(headers).toEqual({ 'anthropic-version': '2023-06-01' })
    expect(encode({}, 'stream').body['stream']).toBe(true)
  })

  test('takes parameters as they are, and they win', () => {
    const params = { max_tokens: 9, thinking: { type: 'adaptive' }, x_new: [{ deep: null }] }
    expect(encode({ params }).body).toMatchObject(params)
  })

  test('a stream flag among the parameters cannot break the answer', () => {
    expect(encode({ params: { stream: true } }).body).not.toHaveProperty('stream')
    expect(encode({ params: { stream: false } }, 'stream').body['stream']).toBe(true)
  })

  test('puts the system prompt before the blocks of params.system', () => {
    const cached = { type: 'text', text: 'Rules', cache_control: { type: 'ephemeral' } }
    expect(encode({ system: 'Be kind' }).body['system']).toBe('Be kind')
    expect(encode({ params: { system: [cached] } }).body['system']).toEqual([cached])
    expect(encode({ system: 'Be kind', params: { system: [cached] } }).body['system']).toEqual([
      { type: 'text', text: 'Be kind' },
      cached,
    ])
  })

  test('UPP-059 a text in params.system follows the system prompt as a block', () => {
    expect(encode({ system: 'Be kind', params: { system: 'Rules' } }).body['system']).toEqual([
      { type: 'text', text: 'Be kind' },
      { type: 'text', text: 'Rules' },
    ])
  })

  test('UPP-062 cache_control of a message is set on its last block that is not thinking', () => {
    const cache_control = { type: 'ephemeral' }
    const metadata = { anthropic: { cache_control } }
    const signed = { anthropic: { signature: 's' } }
    const messages = [
      new UserMessage(
        [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
        { metadata },
      ),
      new AssistantMessage(
        [
          { type: 'text', text: 'c' },
          { type: 'reasoning', text: 'hm', metadata: signed },
        ],
        [{ toolCallId: 't', toolName: 'add', arguments: {} }],
        { metadata },
      ),
      new ToolResultMessage([{ toolCallId: 't', toolName: 'add', result: 'd' }], { metadata }),
    ]
    const sent = encode({ messages }).body['messages'] as JsonObject[]
    expect(sent.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    const marked = sent.map(({ content }) =>
      (content as JsonObject[]).map((block) => [block['type'], block['cache_control']]),
    )
    expect(marked[0]).toEqual([
      ['text', undefined],
      ['text', cache_control],
    ])
    expect(marked[1]!.at(-1)).toEqual(['tool_use', cache_control])
    expect(marked[1]!.filter(([, mark]) => mark !== undefined)).toHaveLength(1)
    expect(marked[2]).toEqual([['tool_result', cache_control]])
  })

  test('asks for structure by output_config, beside what the caller set there', () => {
    const structure = {
      type: 'object',
      properties: { age: { type: 'integer', minimum: 0 } },
      required: ['age'],
    }
    const { body, warnings } = encode({ structure, params: { output_config: { effort: 'low' } } })
    expect(body['output_config']).toEqual({
      effort: 'low',
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          properties: { age: { type: 'integer' } },
          required: ['age'],
          additionalProperties: false,
        },
      },
    })
    expect(warnings.map(({ code }) => code)).toEqual(['schema_changed', 'schema_changed'])
    expect(body).not.toHaveProperty('tools')
    const own = { format: { type: 'json_schema', schema: { type: 'object' } } }
    expect(encode({ structure, params: { output_config: own } }).body['output_config']).toEqual(own)
  })

  test('sends whole schemas, native tools after function tools, and options of tools', () => {
    const search = { type: 'web_search_20260318', name: 'web_search', max_uses: 2 }
    const marked = { ...tool, metadata: { anthropic: { strict: true }, openai: { no: 1 } } }
    expect(encode({ tools: [marked], params: { tools: [search] } }).body['tools']).toEqual([
      { name: 'add', description: 'Adds.', input_schema: tool.parameters, strict: true },
      search,
    ])
  })

  test('two tools of one name are refused before the vendor sees them', () => {
    const params = { tools: [{ type: 'custom_thing', name: 'add' }] }
    expect(() => encode({ tools: [tool], params })).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST', provider: 'anthropic' }),
    )
  })
})

describe('user content', () => {
  test('images by data and by address, documents in every form', () => {
    const data = encodeBase64(new Uint8Array([1, 2, 3]))
    const message = new UserMessage([
      {
        type: 'image',
        source: { type: 'bytes', data: new Uint8Array([1, 2, 3]) },
        mimeType: 'image/png',
      },
      { type: 'image', source: { type: 'base64', data }, mimeType: 'image/jpeg' },
      { type: 'image', source: { type: 'url', url: 'https://x/y.png' }, mimeType: 'image/png' },
      {
        type: 'image',
        source: { type: 'url', url: `data:image/gif;base64,${data}` },
        mimeType: '',
      },
      {
        type: 'document',
        source: { type: 'base64', data },
        mimeType: 'application/pdf',
        title: 'T',
      },
      { type: 'document', source: { type: 'text', data: 'plain' }, mimeType: 'text/plain' },
      { type: 'document', source: { type: 'base64', data: btoa('a,b') }, mimeType: 'text/csv' },
      {
        type: 'document',
        source: { type: 'url', url: 'https://x/y.pdf' },
        mimeType: 'application/pdf',
        metadata: { anthropic: { citations: { enabled: true } } },
      },
    ])
    expect(contentOf({ messages: [message] })).toEqual([
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data } },
      { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data } },
      { type: 'image', source: { type: 'url', url: 'https://x/y.png' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/gif', data } },
      {
        type: 'document',
        source: { type: 'base64', media_type: 'application/pdf', data },
        title: 'T',
      },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'plain' } },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'a,b' } },
      {
        type: 'document',
        source: { type: 'url', url: 'https://x/y.pdf' },
        citations: { enabled: true },
      },
    ])
  })

  test('audio, video and bare bytes are refused by name', () => {
    for (const type of ['audio', 'video', 'binary'] as const) {
      const block = { type, data: new Uint8Array(), mimeType: `${type}/x` }
      expect(() => encode({ messages: [new UserMessage([block])] })).toThrow(
        expect.objectContaining({
          code: 'INVALID_REQUEST',
          message: expect.stringContaining(type),
        }),
      )
    }
  })

  test('cache marks of a block and of a message', () => {
    const cache_control = { type: 'ephemeral', ttl: '1h' }
    const metadata = { anthropic: { cache_control } }
    const marked = new UserMessage([
      { type: 'text', text: 'a', metadata },
      { type: 'text', text: 'b' },
    ])
    expect(contentOf({ messages: [marked] })).toEqual([
      { type: 'text', text: 'a', cache_control },
      { type: 'text', text: 'b' },
    ])
    const whole = new UserMessage(
      [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
      { metadata },
    )
    expect(contentOf({ messages: [whole] })).toEqual([
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b', cache_control },
    ])
  })
})

describe('an answer sent back', () => {
  const body = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-x-1',
    content: [
      { type: 'thinking', thinking: 'Hm', signature: 'S1' },
      { type: 'text', text: 'The sky', citations: [{ type: 'char_location', cited_text: 'sky' }] },
      { type: 'tool_use', id: 'toolu_1', name: 'add', input: { a: 1 }, caller: { type: 'direct' } },
      { type: 'thinking', thinking: '', signature: 'S2' },
      { type: 'redacted_thinking', data: 'R' },
      { type: 'server_tool_use', id: 'srv', name: 'web_search', input: { q: 'x' } },
      { type: 'web_search_tool_result', tool_use_id: 'srv', content: [{ encrypted_content: 'E' }] },
      { type: 'block_of_the_future', payload: { a: [1, null] } },
      { type: 'text', text: 'is blue.' },
    ],
    stop_reason: 'tool_use',
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1 },
  }
  const { content, toolCalls, metadata } = fold(
    anthropicMessages.decodeResponse(body, contextOf(target)),
  )
  const answer = new AssistantMessage(content, toolCalls, { metadata: metadata! })
  const results = new ToolResultMessage([{ toolCallId: 'toolu_1', result: '2' }])
  const messages = [new UserMessage('Hi'), answer, results]

  test('is what came, block by block', () => {
    expect(contentOf({ messages }, 1)).toEqual(body.content)
  })

  test('goes to another provider without signatures and native blocks', () => {
    const other = { ...target, provider: 'proxy' }
    const { body, warnings } = anthropicMessages.encodeRequest(
      requestOf({ messages }),
      other,
      'complete',
    )
    const { messages: sent } = JSON.parse(body) as { messages: JsonObject[] }
    expect(sent[1]?.['content']).toEqual([
      { type: 'text', text: 'The sky' },
      { type: 'text', text: 'is blue.' },
      { type: 'tool_use', id: 'toolu_1', name: 'add', input: { a: 1 } },
    ])
    expect(new Set(warnings.map(({ code }) => code))).toEqual(
      new Set(['foreign_reasoning_dropped', 'unsupported_block']),
    )
  })

  test('reasoning of other vendors and blank signatures are never sent', () => {
    const foreign = new AssistantMessage(
      [
        { type: 'reasoning', text: 'secret', metadata: { google: { api: 'google-generate' } } },
        {
          type: 'reasoning',
          text: 'blank',
          metadata: {
            anthropic: {
              api: 'anthropic-messages',
              native: { type: 'thinking', signature: '' },
            },
          },
        },
        { type: 'text', text: '' },
        { type: 'text', text: 'ok' },
      ],
      [{ toolCallId: 'google call:0', toolName: 'add', arguments: {} }],
    )
    const answered = new ToolResultMessage([{ toolCallId: 'google call:0', result: 1 }])
    const { body } = encode({ messages: [new UserMessage('Hi'), foreign, answered] })
    const [, assistant, user] = body['messages'] as { content: JsonObject[] }[]
    expect(assistant?.content.map(({ type }) => type)).toEqual(['text', 'tool_use'])
    const id = assistant?.content[1]?.['id']
    expect(id).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
    expect(user?.content[0]?.['tool_use_id']).toBe(id)
  })

  test('an answer of which nothing is left is left out', () => {
    const empty = new AssistantMessage([{ type: 'reasoning', text: 'secret' }])
    const { body } = encode({ messages: [new UserMessage('a'), empty, new UserMessage('b')] })
    expect(body['messages']).toHaveLength(2)
  })

  test('edited text is what is sent, whatever the metadata keeps', () => {
    const [, text] = content
    const edited = new AssistantMessage([{ ...text, type: 'text', text: '[redacted]' }])
    const { body } = encode({ messages: [new UserMessage('a'), edited] })
    expect(JSON.stringify(body)).not.toContain('The sky')
  })
})

describe('tool results', () => {
  const answer = new AssistantMessage('', [
    { toolCallId: 'c1', toolName: 'shot', arguments: {} },
    { toolCallId: 'c2', toolName: 'shot', arguments: {} },
    { toolCallId: 'c3', toolName: 'shot', arguments: {} },
    { toolCallId: 'c4', toolName: 'shot', arguments: {} },
  ])
  test('text, JSON, images, errors and nothing', () => {
    const results = new ToolResultMessage([
      { toolCallId: 'c1', result: { a: [1] } },
      {
        toolCallId: 'c2',
        result: [
          { type: 'text', text: 'Here' },
          { type: 'image', source: { type: 'base64', data: 'AQID' }, mimeType: 'image/png' },
          { type: 'audio', data: new Uint8Array(3), mimeType: 'audio/wav' },
        ],
      },
      { toolCallId: 'c3', result: 'boom', isError: true },
      { toolCallId: 'c4', result: undefined },
    ])
    expect(contentOf({ messages: [new UserMessage('Hi'), answer, results] }, 2)).toEqual([
      { type: 'tool_result', tool_use_id: 'c1', content: '{"a":[1]}' },
      {
        type: 'tool_result',
        tool_use_id: 'c2',
        content: [
          { type: 'text', text: 'Here' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AQID' } },
          { type: 'text', text: '[audio/wav, 3 bytes: not shown]' },
        ],
      },
      { type: 'tool_result', tool_use_id: 'c3', content: 'boom', is_error: true },
      { type: 'tool_result', tool_use_id: 'c4' },
    ])
  })
})
