import { describe, expect, test } from 'vitest'
import type { JsonObject, JsonValue } from '@skein/base'
import { requestOf } from '../../../test/wires/wire-cases.ts'
import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
} from '../../contract/message.ts'
import type { LLMRequest } from '../../contract/provider.ts'
import type { RequestMode } from '../wire.ts'
import { ollamaChat } from './wire.ts'

const target = { provider: 'ollama', modelId: 'qwen', dialect: {} }
const encode = (fields: Partial<LLMRequest> = {}, mode: RequestMode = 'complete') => {
  const { body, ...rest } = ollamaChat.encodeRequest(requestOf(fields), target, mode)
  return { body: JSON.parse(body) as Record<string, JsonValue>, ...rest }
}
const sent = (...messages: Message[]): JsonObject[] =>
  encode({ messages }).body['messages'] as JsonObject[]

describe('the body', () => {
  test('says whether to stream, and nothing else that was not asked for', () => {
    const messages = [{ role: 'user', content: 'Hi' }]
    expect(encode().body).toEqual({ model: 'qwen', stream: false, messages })
    expect(encode({}, 'stream').body['stream']).toBe(true)
    expect(encode().path).toBe('/chat')
  })

  test('takes parameters as they are, and warns of those the server would not see', () => {
    const params = { think: 'low', keep_alive: '5m', options: { temperature: 0 }, x_new: 1 }
    expect(encode({ params }).body).toMatchObject(params)
    expect(encode({ params }).warnings).toEqual([])
    const { body, warnings } = encode({ params: { temperature: 0 } })
    expect(body['temperature']).toBe(0)
    expect(warnings).toMatchObject([
      { code: 'misplaced_parameter', pointer: '/params/temperature' },
    ])
  })

  test('system, structure and tools', () => {
    const parameters = { type: 'object', $defs: { a: {} } }
    const tool = { name: 'add', description: 'Adds.', parameters, run: () => 0 }
    const native = { type: 'web_search' }
    const structure = { type: 'object', properties: {} }
    const { body } = encode({ system: 'S', structure, tools: [tool], params: { tools: [native] } })
    expect(body).toMatchObject({
      format: structure,
      messages: [{ role: 'system', content: 'S' }, { role: 'user' }],
      tools: [
        { type: 'function', function: { name: 'add', description: 'Adds.', parameters } },
        native,
      ],
    })
    expect(encode({ structure, params: { format: 'json' } }).body['format']).toBe('json')
    const clash = { type: 'function', function: { name: 'add' } }
    expect(() => encode({ tools: [tool], params: { tools: [clash] } })).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST' }),
    )
  })
})

describe('messages', () => {
  test('images are data; an address or another medium is refused', () => {
    const image = { type: 'image' as const, mimeType: 'image/png' }
    const bytes = new Uint8Array([1, 2, 3])
    expect(
      sent(
        new UserMessage([
          { type: 'text', text: 'a' },
          { ...image, source: { type: 'bytes', data: bytes } },
          { ...image, source: { type: 'url', url: 'data:image/png;base64,BAUG' } },
          { type: 'text', text: 'b' },
        ]),
      ),
    ).toEqual([{ role: 'user', content: 'a\nb', images: ['AQID', 'BAUG'] }])
    const refused = [
      { ...image, source: { type: 'url' as const, url: 'https://x/y.png' } },
      { type: 'audio' as const, data: bytes, mimeType: 'audio/wav' },
      {
        type: 'document' as const,
        source: { type: 'text' as const, data: '' },
        mimeType: 'text/plain',
      },
    ]
    for (const block of refused) {
      expect(() => sent(new UserMessage([block]))).toThrow(
        expect.objectContaining({ code: 'INVALID_REQUEST', provider: 'ollama' }),
      )
    }
  })

  test('its own thinking goes back, that of others does not; results carry the name of their tool', () => {
    const calls = [
      { toolCallId: 'a', toolName: 'add', arguments: { x: 1 } },
      {
        toolCallId: 'given',
        toolName: 'google_now',
        arguments: {},
        metadata: {
          ollama: { api: 'ollama-chat', native: { id: 'given', function: { index: 1 } } },
        },
      },
    ]
    const content = [
      { type: 'reasoning' as const, text: 'Hm' },
      { type: 'text' as const, text: 'A' },
      { type: 'text' as const, text: 'B' },
    ]
    const own = new AssistantMessage(content, calls, {
      metadata: { ollama: { api: 'ollama-chat' } },
    })
    const results = new ToolResultMessage([
      { toolCallId: 'a', result: { sum: 2 } },
      { toolCallId: 'given', result: 'boom', isError: true },
    ])
    expect(sent(new UserMessage('Hi'), own, results).slice(1)).toEqual([
      {
        role: 'assistant',
        content: 'AB',
        thinking: 'Hm',
        tool_calls: [
          { function: { name: 'add', arguments: { x: 1 } } },
          { id: 'given', function: { index: 1, name: 'google_now', arguments: {} } },
        ],
      },
      { role: 'tool', content: '{"sum":2}', tool_name: 'add' },
      { role: 'tool', content: 'Error: boom', tool_name: 'google_now', tool_call_id: 'given' },
    ])
    const foreign = new AssistantMessage(content)
    expect(sent(new UserMessage('Hi'), foreign)[1]).toEqual({ role: 'assistant', content: 'AB' })
  })

  test('what a tool returns and the model cannot see is told', () => {
    const call = new AssistantMessage('', [{ toolCallId: 'c', toolName: 'f', arguments: {} }])
    const result = [
      { type: 'text', text: 'Look' },
      { type: 'image', source: { type: 'base64', data: 'AQID' }, mimeType: 'image/png' },
      { type: 'image', source: { type: 'url', url: 'https://x/y' }, mimeType: 'image/png' },
      { type: 'document', source: { type: 'text', data: 'doc' }, mimeType: 'text/plain' },
      { type: 'audio', data: new Uint8Array(2), mimeType: 'audio/wav' },
    ]
    const results = new ToolResultMessage([{ toolCallId: 'c', result }])
    expect(sent(new UserMessage('Hi'), call, results)[2]).toEqual({
      role: 'tool',
      content: 'Look\n[image, image/png: not shown]\ndoc\n[audio, audio/wav: not shown]',
      images: ['AQID'],
      tool_name: 'f',
    })
  })
})

test('UPP-005 a format among the parameters is sent instead of the structure, without its warnings', () => {
  const structure = { type: 'object', properties: { a: { type: 'string', pattern: '^x' } } }
  const plain = encode({ structure })
  expect(plain.body['format']).toMatchObject({ type: 'object' })
  expect(plain.warnings.length).toBeGreaterThan(0)
  const own = encode({ structure, params: { format: 'json' } })
  expect(own.body['format']).toBe('json')
  expect(own.warnings).toEqual([])
})
