import type { JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { contextOf, fold, requestOf } from '../../../test/wires/wire-cases.ts'
import type { UserContent } from '../../contract/content.ts'
import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
} from '../../contract/message.ts'
import type { LLMRequest } from '../../contract/provider.ts'
import { chatDialect, type OpenAIChatDialect } from './dialect.ts'
import { openaiChat } from './wire.ts'

const targetOf = (dialect: Partial<OpenAIChatDialect> = {}, provider = 'acme') => ({
  provider,
  modelId: 'm',
  dialect: { ...chatDialect, ...dialect },
})

function encode(
  fields: Partial<LLMRequest>,
  dialect: Partial<OpenAIChatDialect> = {},
  mode: 'complete' | 'stream' = 'complete',
) {
  const { body, warnings } = openaiChat.encodeRequest(requestOf(fields), targetOf(dialect), mode)
  return { body: JSON.parse(body) as JsonObject & { messages: JsonObject[] }, warnings }
}
const messagesOf = (messages: readonly Message[], dialect: Partial<OpenAIChatDialect> = {}) =>
  encode({ messages }, dialect).body.messages
const partsOf = (content: readonly UserContent[], dialect: Partial<OpenAIChatDialect> = {}) =>
  messagesOf([new UserMessage(content)], dialect)[0]?.['content']

describe('fields', () => {
  test('nothing is imposed on a plain request', () => {
    expect(encode({}).body).toEqual({ model: 'm', messages: [{ role: 'user', content: 'Hi' }] })
  })

  test('a stream asks for its usage, unless the caller says otherwise', () => {
    expect(encode({}, {}, 'stream').body).toMatchObject({
      stream: true,
      stream_options: { include_usage: true },
    })
    const params = { stream_options: { include_usage: false, include_obfuscation: false } }
    expect(encode({ params }, {}, 'stream').body).toMatchObject(params)
    const none = { stream_options: null }
    expect(encode({ params: none }, {}, 'stream').body).toMatchObject(none)
    expect(encode({}, { streamUsage: false }, 'stream').body).not.toHaveProperty('stream_options')
  })

  test('params pass unchanged and win', () => {
    const params = { model: 'other', max_tokens: 5, temperature: 0, x: { y: [null] } }
    expect(encode({ params }).body).toMatchObject(params)
  })

  test('the mode decides on stream, whatever params say', () => {
    expect(encode({ params: { stream: true } }).body['stream']).toBe(false)
    expect(encode({ params: { stream: false } }, {}, 'stream').body['stream']).toBe(true)
  })

  test('the system prompt comes first, in the role of the vendor', () => {
    expect(encode({ system: 'Be brief.' }).body.messages[0]).toEqual({
      role: 'system',
      content: 'Be brief.',
    })
    const { messages } = encode({ system: 'x' }, { systemRole: 'developer' }).body
    expect(messages[0]?.['role']).toBe('developer')
  })
})

describe('tools', () => {
  const tool = {
    name: 'f',
    description: 'd',
    parameters: { type: 'object', $defs: { a: {} }, anyOf: [] },
    run: () => '',
  }

  test('the whole schema, and strict only when asked', () => {
    const { name, description, parameters } = tool
    const encoded = { type: 'function', function: { name, description, parameters } }
    expect(encode({ tools: [tool] }).body['tools']).toEqual([encoded])
    const asked = { ...tool, metadata: { acme: { strict: true }, other: { x: 1 } } }
    expect(encode({ tools: [asked] }).body['tools']).toEqual([
      { type: 'function', function: { ...encoded.function, strict: true } },
    ])
  })

  test('a custom tool', () => {
    const format = { type: 'text' }
    const custom = { ...tool, metadata: { acme: { type: 'custom', format } } }
    expect(encode({ tools: [custom] }).body['tools']).toEqual([
      { type: 'custom', custom: { name: 'f', description: 'd', format } },
    ])
  })

  test('native tools are merged; a name in both is refused', () => {
    const native = { type: 'web_search' }
    expect(encode({ tools: [tool], params: { tools: [native] } }).body['tools']).toMatchObject([
      { function: { name: 'f' } },
      native,
    ])
    expect(encode({ params: { tools: [native] } }).body['tools']).toEqual([native])
    const clash = { type: 'function', function: { name: 'f' } }
    expect(() => encode({ tools: [tool], params: { tools: [clash] } })).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST', provider: 'acme' }),
    )
  })
})

describe('structure', () => {
  const loose = { type: 'object', properties: { a: { type: 'string' } }, title: 'My answer!' }
  const strict = { ...loose, required: ['a'], additionalProperties: false }

  test('strict wherever that means the same, else as it is with a warning for the place', () => {
    expect(encode({ structure: strict }).body['response_format']).toEqual({
      type: 'json_schema',
      json_schema: { name: 'My_answer_', schema: strict, strict: true },
    })
    const closed = encode({ structure: loose })
    expect(closed.body['response_format']).toEqual({
      type: 'json_schema',
      json_schema: {
        name: 'My_answer_',
        schema: { ...strict, properties: { a: { type: ['string', 'null'] } } },
        strict: true,
      },
    })
    expect(closed.warnings).toEqual([])
    const open = { ...loose, additionalProperties: { type: 'number' } }
    const { body, warnings } = encode({ structure: open })
    expect(body['response_format']).toEqual({
      type: 'json_schema',
      json_schema: { name: 'My_answer_', schema: open },
    })
    expect(warnings).toMatchObject([
      { code: 'schema_not_strict', pointer: '/structure/additionalProperties' },
    ])
  })

  test("the caller's own response_format stands", () => {
    const params = { response_format: { type: 'text' } }
    expect(encode({ structure: loose, params }).body['response_format']).toEqual({ type: 'text' })
  })

  test('where the vendor has only JSON mode, the model is told the schema', () => {
    const { body, warnings } = encode(
      { structure: loose, system: 'Be brief.' },
      { structuredOutput: 'json_object' },
    )
    expect(body['response_format']).toEqual({ type: 'json_object' })
    expect(body.messages[0]?.['content']).toMatch(/^Be brief\.\n\n[^]*"properties"/)
    expect(warnings).toMatchObject([{ code: 'structure_not_enforced' }])
  })
})

describe('user content', () => {
  const bytes = new Uint8Array([1, 2])

  test('parts of every kind', () => {
    expect(
      partsOf(
        [
          { type: 'text', text: 'look' },
          { type: 'image', source: { type: 'base64', data: 'AQI=' }, mimeType: 'image/png' },
          { type: 'image', source: { type: 'bytes', data: bytes }, mimeType: 'image/jpeg' },
          {
            type: 'image',
            source: { type: 'url', url: 'https://x.test/a' },
            mimeType: 'image/gif',
          },
          { type: 'audio', data: bytes, mimeType: 'audio/mpeg' },
          {
            type: 'document',
            source: { type: 'base64', data: 'AQI=' },
            mimeType: 'application/pdf',
            title: 'a.pdf',
          },
          {
            type: 'document',
            source: { type: 'text', data: 'body' },
            mimeType: 'text/plain',
            title: 'T',
          },
          { type: 'video', data: bytes, mimeType: 'video/mp4' },
          { type: 'binary', data: bytes, mimeType: 'application/zip' },
        ],
        { media: ['image', 'audio', 'document', 'video'] },
      ),
    ).toEqual([
      { type: 'text', text: 'look' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AQI=' } },
      { type: 'image_url', image_url: { url: 'data:image/jpeg;base64,AQI=' } },
      { type: 'image_url', image_url: { url: 'https://x.test/a' } },
      { type: 'input_audio', input_audio: { data: 'AQI=', format: 'mp3' } },
      { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AQI=' } },
      { type: 'text', text: 'T\n\nbody' },
      { type: 'video_url', video_url: { url: 'data:video/mp4;base64,AQI=' } },
      { type: 'file', file: { filename: 'file', file_data: 'data:application/zip;base64,AQI=' } },
    ])
  })

  test('options of the vendor join their part; those of others do not', () => {
    expect(
      partsOf([
        {
          type: 'text',
          text: 'a',
          metadata: { acme: { prompt_cache_breakpoint: { mode: 'explicit' } } },
        },
        {
          type: 'image',
          source: { type: 'url', url: 'u' },
          mimeType: 'image/png',
          metadata: { acme: { detail: 'low' }, other: { x: 1 } },
        },
      ]),
    ).toEqual([
      { type: 'text', text: 'a', prompt_cache_breakpoint: { mode: 'explicit' } },
      { type: 'image_url', image_url: { url: 'u', detail: 'low' } },
    ])
  })

  test('options of a message join it', () => {
    const metadata = { acme: { name: 'Ada' }, other: { name: 'Bob' } }
    expect(messagesOf([new UserMessage('hi', { metadata })])).toEqual([
      { role: 'user', content: 'hi', name: 'Ada' },
    ])
  })

  test('two vendors of one name do not share what was encoded', () => {
    const message = new UserMessage([
      { type: 'document', source: { type: 'url', url: 'u' }, mimeType: 'application/pdf' },
    ])
    expect(messagesOf([message], { documentUrl: 'file_data' })).toMatchObject([
      { content: [{ type: 'file' }] },
    ])
    expect(messagesOf([message], { documentUrl: 'document_url' })).toMatchObject([
      { content: [{ type: 'document_url' }] },
    ])
  })

  test('a document by address is sent the way of the vendor, or refused', () => {
    const document: UserContent = {
      type: 'document',
      source: { type: 'url', url: 'https://x.test/a.pdf' },
      mimeType: 'application/pdf',
    }
    expect(partsOf([document], { documentUrl: 'file_data' })).toMatchObject([
      { type: 'file', file: { file_data: 'https://x.test/a.pdf' } },
    ])
    expect(partsOf([document], { documentUrl: 'document_url' })).toMatchObject([
      { type: 'document_url', document_url: 'https://x.test/a.pdf' },
    ])
    expect(() => partsOf([document])).toThrow(expect.objectContaining({ code: 'INVALID_REQUEST' }))
  })

  test('what the vendor does not take is refused', () => {
    expect(() =>
      partsOf([{ type: 'audio', data: bytes, mimeType: 'audio/wav' }], { media: [] }),
    ).toThrow(
      expect.objectContaining({
        code: 'INVALID_REQUEST',
        message: expect.stringContaining('audio'),
      }),
    )
  })
})

describe('tool results', () => {
  const answered = (result: unknown, isError?: boolean) => [
    new AssistantMessage('', [{ toolCallId: 'c', toolName: 'f', arguments: {} }]),
    new ToolResultMessage([{ toolCallId: 'c', result, ...(isError && { isError }) }]),
  ]
  const image = { type: 'image', source: { type: 'base64', data: 'AQI=' }, mimeType: 'image/png' }

  test.each([
    ['text', 'sunny', undefined, 'sunny'],
    ['data', { a: 1 }, undefined, '{"a":1}'],
    ['an error', 'no such city', true, 'Error: no such city'],
    ['an error that says so', 'Error: no', true, 'Error: no'],
    [
      'blocks of text',
      [
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
      ],
      undefined,
      'a\nb',
    ],
  ])('%s', (_, result, isError, content) => {
    expect(messagesOf(answered(result, isError))[1]).toEqual({
      role: 'tool',
      tool_call_id: 'c',
      content,
    })
  })

  test('images follow in a user message', () => {
    const [, tool, user] = messagesOf(answered([{ type: 'text', text: 'see' }, image]))
    expect(tool?.['content']).toBe('see\n[image: see the message below]')
    expect(user).toMatchObject({ role: 'user', content: [{ type: 'text' }, { type: 'image_url' }] })
  })

  test('media the vendor cannot take are named and warned about', () => {
    const { body, warnings } = encode({ messages: answered(image) }, { media: [] })
    expect(body.messages).toHaveLength(2)
    expect(body.messages[1]?.['content']).toBe('[image that cannot be shown]')
    expect(warnings).toMatchObject([{ code: 'unsupported_block' }])
  })
})

describe('replay', () => {
  /** What the vendor gets back after it answered with `message`. */
  function replay(message: JsonObject, dialect: Partial<OpenAIChatDialect> = {}) {
    const target = targetOf(dialect)
    const events = openaiChat.decodeResponse(
      { id: 'c', model: 'm', choices: [{ message, finish_reason: 'stop' }] },
      contextOf(target),
    )
    const { content, toolCalls, metadata } = fold(events)
    const answer = new AssistantMessage(content, toolCalls, { ...(metadata && { metadata }) })
    const { body, warnings } = encode({ messages: [answer] }, dialect)
    return { sent: body.messages[0], warnings, answer }
  }

  test.each([
    ['reasoning_content', { content: 'a', reasoning_content: 'r' }],
    ['reasoning', { content: 'a', reasoning: 'r' }],
    ['reasoning_details', { content: 'a', reasoning_details: [{ type: 'x', signature: 's' }] }],
    [
      'thinking',
      {
        content: [
          { type: 'thinking', thinking: [{ type: 'text', text: 'r' }] },
          { type: 'text', text: 'a' },
        ],
      },
    ],
  ] as const)('%s goes back where it came from', (reasoning, message) => {
    const { sent, warnings } = replay(message as JsonObject, { reasoning })
    expect(sent).toEqual({ role: 'assistant', ...message })
    expect(warnings).toEqual([])
  })

  test('reasoning is left out where the vendor does not want it', () => {
    const { sent } = replay({ content: 'a', reasoning_content: 'r' })
    expect(sent).toEqual({ role: 'assistant', content: 'a' })
  })

  test('refusal, audio, chosen fields', () => {
    expect(replay({ content: null, refusal: 'No.' }).sent).toEqual({
      role: 'assistant',
      content: null,
      refusal: 'No.',
    })
    expect(
      replay({ content: null, audio: { id: 'au', data: 'AQ==', transcript: 't' } }).sent,
    ).toEqual({
      role: 'assistant',
      content: '',
      audio: { id: 'au' },
    })
    const annotations = [{ type: 'file' }]
    const { sent } = replay(
      { content: 'a', annotations, other: 1 },
      { replayFields: ['annotations'] },
    )
    expect(sent).toEqual({ role: 'assistant', content: 'a', annotations })
  })

  test('calls go back byte by byte, with fields nobody knows', () => {
    const calls = [
      {
        id: 'c1',
        type: 'function',
        function: { name: 'f', arguments: '{"a": 1,  "b":[ ]}' },
        extra_content: { google: { thought_signature: 'x' } },
      },
      { id: 'c2', type: 'custom', custom: { name: 'sql', input: 'a "b"' } },
    ]
    const { sent } = replay({ content: null, tool_calls: calls })
    expect(sent?.['tool_calls']).toEqual(calls)
  })

  test('edited arguments are written anew', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{ "a": 1 }' } }
    const { answer } = replay({ content: null, tool_calls: [call] })
    const edited = { ...answer.toolCalls![0]!, arguments: { a: 2 } }
    const [sent] = messagesOf([new AssistantMessage('', [edited])])
    expect(sent?.['tool_calls']).toMatchObject([{ function: { arguments: '{"a":2}' } }])
  })

  test('arguments that were never valid are sent as an empty object', () => {
    const call = { id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":' } }
    const { sent } = replay({ content: null, tool_calls: [call] })
    expect(sent?.['tool_calls']).toMatchObject([{ function: { arguments: '{}' } }])
  })
})

describe('history from elsewhere', () => {
  const foreign = new AssistantMessage(
    [
      {
        type: 'reasoning',
        text: 'secret',
        metadata: { other: { api: 'x', native: { signature: 's' } } },
      },
      { type: 'text', text: 'a' },
      { type: 'native', name: 'server_tool_use', metadata: {} },
    ],
    [{ toolCallId: 'google:0:x', toolName: 'f', arguments: {} }],
    { metadata: { other: { api: 'x', reasoning_details: [1] } } },
  )

  test('foreign reasoning and blocks are left out, ids are mapped on both sides', () => {
    const messages = [foreign, new ToolResultMessage([{ toolCallId: 'google:0:x', result: 'r' }])]
    const toolCallId = { pattern: /^[a-z0-9_]+$/, maxLength: 40 }
    const { body, warnings } = encode({ messages }, { toolCallId, reasoning: 'reasoning_content' })
    const [assistant, tool] = body.messages
    const [call] = (assistant?.['tool_calls'] ?? []) as JsonObject[]
    expect(assistant).toEqual({ role: 'assistant', content: 'a', tool_calls: [call!] })
    expect(call?.['id']).toMatch(toolCallId.pattern)
    expect(tool?.['tool_call_id']).toBe(call?.['id'])
    expect(warnings.map((warning) => warning.code).sort()).toEqual([
      'foreign_reasoning_dropped',
      'unsupported_block',
    ])
  })

  test('an open call is answered with an error', () => {
    const { body, warnings } = encode({ messages: [foreign, new UserMessage('next')] })
    expect(body.messages.map((message) => message['role'])).toEqual(['assistant', 'tool', 'user'])
    expect(warnings.some((warning) => warning.code === 'missing_tool_result')).toBe(true)
  })
})

test('UPP-061 UPP-071 every kind of part keeps the options of its vendor, and a document has a name', () => {
  const options = { mark: 1, detail: 'low' }
  const metadata = { acme: options }
  const media = ['image', 'audio', 'video', 'document'] as const
  const pdf = { type: 'base64', data: 'AQ==' } as const
  const parts = partsOf(
    [
      { type: 'text', text: 'a', metadata },
      { type: 'image', source: pdf, mimeType: 'image/png', metadata },
      { type: 'audio', data: Uint8Array.of(1), mimeType: 'audio/wav', metadata },
      { type: 'video', data: Uint8Array.of(1), mimeType: 'video/mp4', metadata },
      { type: 'document', source: pdf, mimeType: 'application/pdf', metadata },
      { type: 'document', source: pdf, mimeType: 'text/csv', metadata },
      { type: 'document', source: pdf, mimeType: 'text/csv', title: 't.csv', metadata },
      { type: 'document', source: { type: 'text', data: 'b' }, mimeType: 'text/plain', metadata },
      { type: 'binary', data: Uint8Array.of(1), mimeType: 'a/zip', metadata },
    ],
    { media: [...media] },
  )
  const file = (filename: string, type: string) => ({
    type: 'file',
    file: { filename, file_data: `data:${type};base64,AQ==` },
    ...options,
  })
  expect(parts).toEqual([
    { type: 'text', text: 'a', ...options },
    { type: 'image_url', image_url: { url: 'data:image/png;base64,AQ==', detail: 'low' }, mark: 1 },
    { type: 'input_audio', input_audio: { data: 'AQ==', format: 'wav' }, ...options },
    { type: 'video_url', video_url: { url: 'data:video/mp4;base64,AQ==' }, ...options },
    file('document.pdf', 'application/pdf'),
    file('document', 'text/csv'),
    file('t.csv', 'text/csv'),
    { type: 'text', text: 'b', ...options },
    file('file', 'a/zip'),
  ])
})

test('UPP-148 media that tools return: attached where the vendor takes them, otherwise a note and a warning', () => {
  const call = { toolCallId: 'c', toolName: 'f', arguments: {} }
  const url = { type: 'url', url: 'https://a.test/d' }
  const result = [
    { type: 'image', source: { type: 'base64', data: 'AQ==' }, mimeType: 'image/png' },
    { type: 'document', source: url, mimeType: 'application/pdf' },
    { type: 'document', source: { type: 'base64', data: 'AQ==' }, mimeType: 'application/pdf' },
    { type: 'document', source: { type: 'text', data: 'notes' }, mimeType: 'text/plain' },
    { type: 'video', data: Uint8Array.of(1), mimeType: 'video/mp4' },
  ]
  const messages = [
    new UserMessage('x'),
    new AssistantMessage('', [call]),
    new ToolResultMessage([{ toolCallId: 'c', toolName: 'f', result }]),
  ]
  const { body, warnings } = encode(
    { messages },
    { media: ['image', 'document'], documentUrl: 'reject' },
  )
  const [told, attached] = body.messages.slice(2) as [JsonObject, JsonObject]
  expect(told['content']).toBe(
    [
      '[image: see the message below]',
      '[document that cannot be shown]',
      '[document: see the message below]',
      '[document: see the message below]',
      '[video that cannot be shown]',
    ].join('\n'),
  )
  expect(attached).toMatchObject({
    role: 'user',
    content: [
      { type: 'text', text: 'Result of tool call c:' },
      { type: 'image_url' },
      { type: 'text', text: 'Result of tool call c:' },
      { type: 'file' },
      { type: 'text', text: 'Result of tool call c:' },
      { type: 'text', text: 'notes' },
    ],
  })
  expect(warnings.map(({ code, message }) => [code, message])).toEqual([
    ['unsupported_block', 'acme does not take the document that tool call "c" returned.'],
    ['unsupported_block', 'acme does not take the video that tool call "c" returned.'],
  ])
  const reachable = encode({ messages }, { media: ['document'], documentUrl: 'file_data' })
  expect(reachable.warnings).toHaveLength(2)
})

test.each([
  ['image', { type: 'image', source: { type: 'base64', data: 'AQ==' }, mimeType: 'image/png' }],
  ['audio', { type: 'audio', data: Uint8Array.of(1), mimeType: 'audio/wav' }],
  ['video', { type: 'video', data: Uint8Array.of(1), mimeType: 'video/mp4' }],
  ['document', { type: 'document', source: { type: 'base64', data: 'AQ==' }, mimeType: 'a/pdf' }],
  ['document', { type: 'binary', data: Uint8Array.of(1), mimeType: 'a/zip' }],
] as const)('UPP-148 UPP-167 %s input is refused by a vendor that takes none', (kind, block) => {
  const others = (['image', 'audio', 'video', 'document'] as const).filter((one) => one !== kind)
  expect(() => partsOf([block], { media: others })).toThrow(
    expect.objectContaining({
      code: 'INVALID_REQUEST',
      provider: 'acme',
      message: `acme does not take ${kind} input.`,
    }),
  )
  expect(partsOf([block], { media: [kind] })).toHaveLength(1)
})
