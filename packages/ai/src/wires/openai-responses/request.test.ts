import type { JsonObject } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { contextOf, fold, requestOf } from '../../../test/wires/wire-cases.ts'
import {
  AssistantMessage,
  ToolResultMessage,
  UserMessage,
  type Message,
} from '../../contract/message.ts'
import type { LLMRequest } from '../../contract/provider.ts'
import { responsesDialect } from './types.ts'
import { openaiResponses } from './wire.ts'

const target = { provider: 'openai', modelId: 'm', dialect: responsesDialect }

function encode(fields: Partial<LLMRequest>, mode: 'complete' | 'stream' = 'complete') {
  const { body, warnings } = openaiResponses.encodeRequest(requestOf(fields), target, mode)
  return { body: JSON.parse(body) as JsonObject & { input: JsonObject[] }, warnings }
}
const inputOf = (messages: readonly Message[], params: JsonObject = {}) =>
  encode({ messages, params }).body.input

describe('fields', () => {
  test('nothing is imposed: no store, no include', () => {
    const input = [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Hi' }] }]
    expect(encode({}).body).toEqual({ model: 'm', input })
    expect(encode({}, 'stream').body).toEqual({ model: 'm', stream: true, input })
  })

  test('UPP-005 a stream flag among the parameters cannot break the answer', () => {
    expect(encode({ params: { stream: true } }).body['stream']).toBe(false)
    expect(encode({ params: { stream: false } }, 'stream').body['stream']).toBe(true)
  })

  test('UPP-071 media in a result: what the API takes is sent, the rest is a note', () => {
    const call = { toolCallId: 'c', toolName: 'f', arguments: {} }
    const result = [
      { type: 'text', text: 'see' },
      { type: 'image', source: { type: 'url', url: 'https://a.test/i' }, mimeType: 'image/png' },
      { type: 'document', source: { type: 'text', data: 'notes' }, mimeType: 'text/plain' },
      { type: 'document', source: { type: 'base64', data: 'AQ==' }, mimeType: 'application/pdf', title: 'a.pdf' }, // prettier-ignore
      { type: 'audio', data: Uint8Array.of(1), mimeType: 'audio/wav' },
      { type: 'video', data: Uint8Array.of(1), mimeType: 'video/mp4' },
    ]
    const sent = inputOf([
      new UserMessage('x'),
      new AssistantMessage('', [call]),
      new ToolResultMessage([{ toolCallId: 'c', toolName: 'f', result }]),
    ]).at(-1)
    expect(sent).toMatchObject({
      type: 'function_call_output',
      output: [
        { type: 'input_text', text: 'see' },
        { type: 'input_image', image_url: 'https://a.test/i' },
        { type: 'input_text', text: 'notes' },
        { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AQ==' },
        { type: 'input_text', text: '[audio that cannot be shown]' },
        { type: 'input_text', text: '[video that cannot be shown]' },
      ],
    })
  })

  test('the system prompt is instructions; params win', () => {
    expect(encode({ system: 'Be brief.' }).body['instructions']).toBe('Be brief.')
    const params = { instructions: 'mine', store: false, include: ['x'], previous_response_id: 'r' }
    expect(encode({ system: 'Be brief.', params }).body).toMatchObject(params)
  })

  test('function tools keep their schema: strict is off unless asked for', () => {
    const tool = { name: 'f', description: 'd', parameters: { type: 'object' }, run: () => '' }
    const plain = { type: 'function', name: 'f', description: 'd', parameters: { type: 'object' } }
    const native = { type: 'web_search' }
    expect(encode({ tools: [tool], params: { tools: [native] } }).body['tools']).toEqual([
      { ...plain, strict: false },
      native,
    ])
    const asked = { ...tool, metadata: { openai: { strict: true, defer_loading: true } } }
    expect(encode({ tools: [asked] }).body['tools']).toEqual([
      { ...plain, strict: true, defer_loading: true },
    ])
    const custom = { ...tool, metadata: { openai: { type: 'custom' } } }
    expect(encode({ tools: [custom] }).body['tools']).toEqual([
      { type: 'custom', name: 'f', description: 'd' },
    ])
    expect(() =>
      encode({ tools: [tool], params: { tools: [{ type: 'function', name: 'f' }] } }),
    ).toThrow(expect.objectContaining({ code: 'INVALID_REQUEST' }))
  })

  test("structure joins params.text; the caller's own format stands", () => {
    const structure = { type: 'object', properties: {}, required: [], additionalProperties: false }
    expect(encode({ structure, params: { text: { verbosity: 'low' } } }).body['text']).toEqual({
      verbosity: 'low',
      format: { type: 'json_schema', name: 'answer', schema: structure, strict: true },
    })
    const params = { text: { format: { type: 'text' } } }
    expect(encode({ structure, params }).body['text']).toEqual(params.text)
    const { body, warnings } = encode({ structure: { type: 'array' } })
    expect(body['text']).toMatchObject({ format: { schema: { required: ['value'] } } })
    expect(warnings).toMatchObject([{ code: 'schema_not_strict' }])
  })
})

describe('input', () => {
  test('images, documents, options', () => {
    const [item] = inputOf([
      new UserMessage([
        {
          type: 'image',
          source: { type: 'bytes', data: new Uint8Array([1, 2]) },
          mimeType: 'image/png',
          metadata: { openai: { detail: 'high' } },
        },
        { type: 'image', source: { type: 'url', url: 'https://x.test/i' }, mimeType: 'image/png' },
        { type: 'document', source: { type: 'url', url: 'https://x.test/d' }, mimeType: 'a/b' },
        {
          type: 'document',
          source: { type: 'base64', data: 'AQI=' },
          mimeType: 'application/pdf',
          title: 'a.pdf',
        },
        { type: 'document', source: { type: 'text', data: 'body' }, mimeType: 'text/plain' },
      ]),
    ])
    expect(item?.['content']).toEqual([
      { type: 'input_image', image_url: 'data:image/png;base64,AQI=', detail: 'high' },
      { type: 'input_image', image_url: 'https://x.test/i' },
      { type: 'input_file', file_url: 'https://x.test/d' },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AQI=' },
      { type: 'input_text', text: 'body' },
    ])
  })

  test('sound and film are refused', () => {
    const audio = { type: 'audio', data: new Uint8Array(), mimeType: 'audio/wav' } as const
    expect(() => inputOf([new UserMessage([audio])])).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST' }),
    )
  })

  test('rich tool results are sent as such', () => {
    const call = new AssistantMessage('', [{ toolCallId: 'c', toolName: 'f', arguments: { a: 1 } }])
    const image = { type: 'image', source: { type: 'base64', data: 'AQI=' }, mimeType: 'image/png' }
    const video = { type: 'video', data: new Uint8Array(2), mimeType: 'video/mp4' }
    const result = new ToolResultMessage([
      { toolCallId: 'c', result: [{ type: 'text', text: 't' }, image, video] },
    ])
    expect(inputOf([call, result])).toEqual([
      { type: 'function_call', call_id: 'c', name: 'f', arguments: '{"a":1}' },
      {
        type: 'function_call_output',
        call_id: 'c',
        output: [
          { type: 'input_text', text: 't' },
          { type: 'input_image', image_url: 'data:image/png;base64,AQI=' },
          { type: 'input_text', text: '[video that cannot be shown]' },
        ],
      },
    ])
  })

  test('an error is told in words', () => {
    const call = new AssistantMessage('', [{ toolCallId: 'c', toolName: 'f', arguments: {} }])
    const result = new ToolResultMessage([{ toolCallId: 'c', result: 'no', isError: true }])
    expect(inputOf([call, result])[1]).toMatchObject({ output: 'Error: no' })
  })
})

describe('replay', () => {
  const reasoning = (id: string, encrypted_content?: string) => ({
    type: 'reasoning',
    id,
    summary: [{ type: 'summary_text', text: 'r' }],
    ...(encrypted_content && { encrypted_content }),
  })
  const message = (id: string, ...texts: string[]) => ({
    type: 'message',
    id,
    role: 'assistant',
    status: 'completed',
    phase: 'commentary',
    content: texts.map((text) => ({ type: 'output_text', text, annotations: [{ x: 1 }] })),
  })
  const call = {
    type: 'function_call',
    id: 'fc',
    call_id: 'c',
    name: 'f',
    arguments: '{"a":  1}',
    namespace: 'n',
    status: 'completed',
  }
  const custom = { type: 'custom_tool_call', id: 'cc', call_id: 'k', name: 'sql', input: 'x"y' }
  const search = { type: 'web_search_call', id: 'ws', status: 'completed', action: { query: 'q' } }
  const program = { type: 'program', id: 'p', fingerprint: 'opaque' }
  const image = { type: 'image_generation_call', id: 'ig', status: 'completed', result: 'AQI=' }

  function answerOf(output: JsonObject[], rest: JsonObject = {}): AssistantMessage {
    const events = openaiResponses.decodeResponse(
      { id: 'resp', model: 'm', status: 'completed', output, ...rest },
      contextOf(target),
    )
    const { content, toolCalls, metadata } = fold(events)
    return new AssistantMessage(content, toolCalls, { ...(metadata && { metadata }) })
  }

  test('items go back verbatim and in order', () => {
    const output = [
      reasoning('rs1'),
      message('m1', 'one', 'two'),
      reasoning('rs2', 'enc'),
      message('m2', 'three'),
      search,
      program,
      image,
    ]
    const { body, warnings } = encode({ messages: [answerOf(output)] })
    expect(body.input).toEqual(output)
    expect(warnings).toEqual([])
  })

  test('calls between texts keep their place', () => {
    const output = [reasoning('rs1'), call, message('m1', 'after')]
    const answered = new ToolResultMessage([{ toolCallId: 'c', result: 'ok' }])
    expect(inputOf([answerOf(output), answered])).toEqual([
      ...output,
      { type: 'function_call_output', call_id: 'c', output: 'ok' },
    ])
  })

  test('custom calls are answered in their own way', () => {
    const answered = new ToolResultMessage([{ toolCallId: 'k', result: 'ok' }])
    expect(inputOf([answerOf([custom]), answered])).toEqual([
      custom,
      { type: 'custom_tool_call_output', call_id: 'k', output: 'ok' },
    ])
  })

  test('refusals', () => {
    const refusal = { ...message('m'), content: [{ type: 'refusal', refusal: 'No.' }] }
    expect(inputOf([answerOf([refusal])])).toEqual([refusal])
  })

  test('encrypted reasoning goes back though nothing was stored', () => {
    const output = [reasoning('rs', 'enc'), message('m', 'a')]
    expect(inputOf([answerOf(output, { store: false })], { store: false })).toEqual(output)
  })

  test('reasoning that was neither stored nor encrypted is left out, with all ids', () => {
    const answer = answerOf([reasoning('rs'), message('m', 'a'), call, search], { store: false })
    const answered = new ToolResultMessage([{ toolCallId: 'c', result: 'ok' }])
    const { body, warnings } = encode({ messages: [answer, answered] })
    const { id: _m, ...said } = message('m', 'a')
    const { id: _c, ...called } = call
    expect(body.input.slice(0, 2)).toEqual([said, called])
    expect(body.input).toHaveLength(3)
    expect(warnings).toMatchObject([{ code: 'reasoning_dropped' }])
  })

  test('edited text and arguments are what is sent', () => {
    const answer = answerOf([message('m', 'a'), call])
    const edited = new AssistantMessage(
      answer.content.map((block) => (block.type === 'text' ? { ...block, text: 'b' } : block)),
      [{ ...answer.toolCalls![0]!, arguments: { a: 2 } }],
      { metadata: answer.metadata! },
    )
    const [said, called] = inputOf([edited])
    expect(said).toMatchObject({ id: 'm', content: [{ text: 'b' }] })
    expect(called).toMatchObject({ id: 'fc', arguments: '{"a":2}' })
  })

  test('history from elsewhere is degraded to messages and calls', () => {
    const longId = 'x'.repeat(80)
    const foreign = new AssistantMessage(
      [
        { type: 'reasoning', text: 'r', metadata: { other: { api: 'x', native: {} } } },
        { type: 'text', text: 'a' },
        { type: 'text', text: 'b' },
        { type: 'native', name: 'thing', metadata: { other: { api: 'x', native: {} } } },
      ],
      [{ toolCallId: longId, toolName: 'f', arguments: {} }],
    )
    const answered = new ToolResultMessage([{ toolCallId: longId, result: 'ok' }])
    const { body, warnings } = encode({ messages: [foreign, answered] })
    const [said, called, output] = body.input
    expect(said).toEqual({
      type: 'message',
      role: 'assistant',
      content: [
        { type: 'output_text', annotations: [], text: 'a' },
        { type: 'output_text', annotations: [], text: 'b' },
      ],
    })
    expect(String(called?.['call_id']).length).toBeLessThanOrEqual(64)
    expect(output?.['call_id']).toBe(called?.['call_id'])
    expect(warnings.map((warning) => warning.code)).toEqual([
      'foreign_reasoning_dropped',
      'unsupported_block',
    ])
  })

  test('the other OpenAI format is foreign too', () => {
    const other = new AssistantMessage([{ type: 'reasoning', text: 'r' }], undefined, {
      metadata: { openai: { api: 'openai-chat', reasoning_details: [1] } },
    })
    expect(inputOf([other])).toEqual([])
  })
})
