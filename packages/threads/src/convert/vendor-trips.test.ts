import { manualClock } from '@skein/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fromAgUiEvents, type AgUiEvent } from './ag-ui.ts'
import { fromAnthropicMessages, toAnthropicMessages, type AnthropicMessage } from './anthropic.ts'
import { fromResponsesItems, toResponsesItems, type ResponsesItem } from './openai-responses.ts'
import { fromUppMessages, toUppMessages, type UppMessage } from './upp.ts'

const options = { clock: manualClock() }
const numRuns = process.env['SKEIN_DEEP'] ? 1000 : 100
const word = fc.string({ unit: 'grapheme', maxLength: 10 })
const id = fc.stringMatching(/^[a-z0-9_]{1,8}$/)
const object = fc.dictionary(id, fc.oneof(word, fc.integer(), fc.boolean(), fc.constant(null)), {
  maxKeys: 3,
})
const rest = fc.option(fc.record({ cache_control: fc.constant({ type: 'ephemeral' }) }), {
  nil: {},
})

describe('Anthropic messages', () => {
  const media = fc.oneof(
    fc.record({
      type: fc.constant('base64'),
      media_type: fc.constant('image/png'),
      data: fc.constant('AAAA'),
    }),
    fc.record({ type: fc.constant('url'), url: fc.webUrl() }),
    fc.record({ type: fc.constant('file'), file_id: id }),
  )
  const input = fc.oneof(
    fc
      .tuple(fc.record({ type: fc.constant('text'), text: word }), rest)
      .map(([block, more]) => ({ ...block, ...more })),
    fc
      .tuple(fc.record({ type: fc.constant('image'), source: media }), rest)
      .map(([block, more]) => ({ ...block, ...more })),
  )
  const output = fc.oneof(
    fc.record({ type: fc.constant('text'), text: word }),
    fc.record({
      type: fc.constant('text'),
      text: word,
      citations: fc.constant([{ type: 'char_location' }]),
    }),
    fc.record({
      type: fc.constant('thinking'),
      thinking: word,
      signature: fc.stringMatching(/^[a-z]{2,6}$/),
    }),
    fc.record({ type: fc.constant('redacted_thinking'), data: fc.stringMatching(/^[a-z]{2,6}$/) }),
    fc.record({
      type: fc.constant('server_tool_use'),
      id,
      name: fc.constant('web_search'),
      input: object,
    }),
    fc.record({ type: fc.constant('tool_use'), id, name: id, input: object }),
  )
  const result = fc.oneof(
    fc.record({ type: fc.constant('tool_result'), tool_use_id: id, content: word }),
    fc.record({
      type: fc.constant('tool_result'),
      tool_use_id: id,
      content: fc.constant([{ type: 'text', text: 'x' }]),
    }),
    fc.record({
      type: fc.constant('tool_result'),
      tool_use_id: id,
      content: word,
      is_error: fc.boolean(),
    }),
  )
  const user = fc.oneof(
    word.map((content) => ({ role: 'user', content })),
    fc.array(input, { minLength: 1, maxLength: 3 }).map((content) => ({ role: 'user', content })),
    fc
      .tuple(fc.array(result, { minLength: 1, maxLength: 2 }), fc.array(input, { maxLength: 2 }))
      .map(([results, more]) => ({
        role: 'user',
        content: [...results, ...more],
      })),
  )
  const assistant = fc
    .array(output, { minLength: 1, maxLength: 3 })
    .map((content) => ({ role: 'assistant', content }))

  test('come back exactly as they went in', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(user, assistant), { maxLength: 4 }), (pairs) => {
        const messages = pairs.flat() as AnthropicMessage[]
        const { value, lost } = fromAnthropicMessages(messages, options)
        expect(lost).toEqual([])
        expect(toAnthropicMessages(value).value).toEqual(messages)
      }),
      { seed: 21, numRuns },
    )
  })

  test('thinking of another provider is reported, not sent: the API would refuse it', () => {
    const { value: thread } = fromAnthropicMessages(
      [{ role: 'assistant', content: [{ type: 'thinking', thinking: 'hm', signature: 's' }] }],
      options,
    )
    const foreign = JSON.parse(
      JSON.stringify(thread).replace('"anthropic"', '"openai"'),
    ) as typeof thread
    const { value, lost } = toAnthropicMessages(foreign)
    expect(value).toEqual([])
    expect(lost).toContainEqual({
      pointer: '/turns/0/messages/0/parts/0',
      reason: 'Anthropic takes back only thinking that it has signed',
    })
  })

  test('roles alternate and results come first', () => {
    const { value: thread } = fromAnthropicMessages(
      [
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'x' }] },
        { role: 'user', content: 'and then?' },
      ],
      options,
    )
    expect(toAnthropicMessages(thread).value.map(({ role }) => role)).toEqual(['assistant', 'user'])
    expect(toAnthropicMessages(thread).value[1]?.content).toMatchObject([
      { type: 'tool_result' },
      { type: 'text' },
    ])
  })
})

describe('OpenAI Responses items', () => {
  const item = fc.oneof(
    word.map((content) => ({ type: 'message', role: 'user', content })),
    fc
      .array(
        fc.oneof(
          fc.record({ type: fc.constant('input_text'), text: word }),
          fc.record({
            type: fc.constant('input_image'),
            image_url: fc.webUrl(),
            detail: fc.constant('auto'),
          }),
          fc.record({ type: fc.constant('input_image'), file_id: id, detail: fc.constant('low') }),
          fc.record({
            type: fc.constant('input_file'),
            file_data: fc.constant('data:application/pdf;base64,AAAA'),
            filename: id,
          }),
        ),
        { minLength: 1, maxLength: 3 },
      )
      .map((content) => ({ type: 'message', role: 'user', content })),
    fc.record({
      type: fc.constant('message'),
      role: fc.constant('assistant'),
      id,
      status: fc.constant('completed'),
      content: fc.tuple(
        fc.record({
          type: fc.constant('output_text'),
          text: word,
          annotations: fc.constantFrom([], [{ type: 'url_citation', url: 'https://a.example' }]),
        }),
      ),
    }),
    fc.record({
      type: fc.constant('message'),
      role: fc.constant('assistant'),
      id,
      content: fc.array(fc.record({ type: fc.constant('output_text'), text: word }), {
        minLength: 1,
        maxLength: 2,
      }),
    }),
    fc.record({
      type: fc.constant('message'),
      role: fc.constant('assistant'),
      content: fc.tuple(fc.record({ type: fc.constant('refusal'), refusal: word })),
    }),
    fc.record({
      type: fc.constant('reasoning'),
      id,
      summary: fc.array(fc.record({ type: fc.constant('summary_text'), text: word }), {
        maxLength: 3,
      }),
      encrypted_content: fc.constantFrom(null, 'gAAA'),
    }),
    fc.record({
      type: fc.constant('function_call'),
      id,
      call_id: id,
      name: id,
      arguments: object.map((value) => JSON.stringify(value)),
      status: fc.constant('completed'),
    }),
    fc.record({
      type: fc.constant('function_call_output'),
      call_id: id,
      output: fc.oneof(word, fc.constant([{ type: 'input_text', text: 'x' }])),
    }),
    fc.record({ type: fc.constant('web_search_call'), id, status: fc.constant('completed') }),
  )

  test('come back exactly as they went in', () => {
    fc.assert(
      fc.property(fc.array(item, { maxLength: 8 }), (list) => {
        const items = list as unknown as ResponsesItem[]
        const { value, lost } = fromResponsesItems(items, options)
        expect(lost).toEqual([])
        expect(toResponsesItems(value).value).toEqual(items)
      }),
      { seed: 22, numRuns },
    )
  })

  test('instructions are configuration: reported, not stored', () => {
    const { value, lost } = fromResponsesItems(
      [{ type: 'message', role: 'developer', content: 'Be brief.' }],
      options,
    )
    expect(value.turns).toEqual([])
    expect(lost).toHaveLength(1)
  })
})

describe('UPP messages', () => {
  const timestamp = '2026-01-01T00:00:00.000Z'
  const block = fc.oneof(
    fc.record({ type: fc.constant('text'), text: word }),
    fc.record({
      type: fc.constant('image'),
      source: fc.record({ type: fc.constant('url'), url: fc.webUrl() }),
      mimeType: fc.constant('image/png'),
    }),
    fc.record({
      type: fc.constant('image'),
      source: fc.record({ type: fc.constant('base64'), data: fc.constant('AAAA') }),
      mimeType: fc.constant('image/png'),
    }),
    fc.record({
      type: fc.constant('audio'),
      data: fc.uint8Array({ maxLength: 9 }),
      mimeType: fc.constant('audio/wav'),
    }),
  )
  const user = fc.record({
    id: fc.uuid(),
    type: fc.constant('user'),
    content: fc.array(block, { minLength: 1, maxLength: 3 }),
    timestamp: fc.constant(timestamp),
  })
  const assistant = fc.record({
    id: fc.uuid(),
    type: fc.constant('assistant'),
    content: fc.array(
      fc.oneof(
        block,
        fc.record({
          type: fc.constant('reasoning'),
          text: word,
          metadata: fc.constant({ anthropic: { signature: 's' } }),
        }),
      ),
      { maxLength: 3 },
    ),
    toolCalls: fc.array(fc.record({ toolCallId: id, toolName: id, arguments: object }), {
      minLength: 1,
      maxLength: 2,
    }),
    metadata: fc.constant({ anthropic: { stop_reason: 'tool_use' } }),
    timestamp: fc.constant(timestamp),
  })
  const results = fc.record({
    id: fc.uuid(),
    type: fc.constant('tool_result'),
    results: fc.array(
      fc.record({
        toolCallId: id,
        result: fc.oneof(word, object),
        isError: fc.constant(true),
        toolName: id,
      }),
      { minLength: 1, maxLength: 2 },
    ),
    timestamp: fc.constant(timestamp),
  })

  test('UPP-165 messages as JSON come back with id, content, calls, results, metadata and time', () => {
    fc.assert(
      fc.property(fc.array(fc.oneof(user, assistant, results), { maxLength: 6 }), (list) => {
        const messages = list as unknown as UppMessage[]
        const { value, lost } = fromUppMessages(messages, options)
        expect(lost).toEqual([])
        expect(toUppMessages(value).value).toEqual(messages)
      }),
      { seed: 23, numRuns },
    )
  })
})

describe('AG-UI events', () => {
  const timestamp = Date.UTC(2026, 0, 1)

  test('streamed deltas are joined, chunks too; other events are kept whole', () => {
    const events: AgUiEvent[] = [
      { type: 'RUN_STARTED', threadId: 't', runId: 'r1', timestamp },
      { type: 'TEXT_MESSAGE_START', messageId: 'm1', role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'Let me ' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm1', delta: 'see.' },
      { type: 'TEXT_MESSAGE_END', messageId: 'm1' },
      { type: 'TOOL_CALL_CHUNK', toolCallId: 'c1', toolCallName: 'f', delta: '{"a"' },
      { type: 'TOOL_CALL_CHUNK', delta: ':1}' },
      { type: 'TOOL_CALL_RESULT', messageId: 'm2', toolCallId: 'c1', content: 'ok' },
      { type: 'STATE_DELTA', delta: [{ op: 'add', path: '/x', value: 1 }] },
      { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm3', role: 'assistant', delta: 'Done.' },
      { type: 'RUN_FINISHED', threadId: 't', runId: 'r1', outcome: { type: 'success' } },
    ]
    const { value, lost } = fromAgUiEvents(events, options)
    expect(lost).toEqual([])
    expect(value.turns).toMatchObject([
      {
        turn_id: 'r1',
        messages: [
          {
            message_type: 'response',
            parts: [{ content: 'Let me see.' }, { part_kind: 'tool-call', args: '{"a":1}' }],
          },
          {
            message_type: 'request',
            parts: [{ part_kind: 'tool-return', tool_name: 'f', content: 'ok' }],
          },
          { event_type: 'ag-ui.STATE_DELTA', event_data: { delta: [{ op: 'add' }] } },
          { message_type: 'response', parts: [{ content: 'Done.' }] },
        ],
      },
    ])
  })

  test('a run without an end was cut off; an error says so', () => {
    const cut = fromAgUiEvents(
      [
        { type: 'RUN_STARTED', threadId: 't', runId: 'r', timestamp },
        { type: 'TEXT_MESSAGE_CHUNK', messageId: 'm', delta: 'Hal' },
      ],
      options,
    )
    expect(cut.value.turns[0]).toMatchObject({
      completion_status: 'interrupted',
      interruption: { reason: 'network_failure' },
    })
    const failed = fromAgUiEvents(
      [
        { type: 'RUN_STARTED', threadId: 't', runId: 'r', timestamp },
        { type: 'RUN_ERROR', message: 'boom' },
      ],
      options,
    )
    expect(failed.value.turns[0]).toMatchObject({
      interruption: { reason: 'error' },
      messages: [{ event_type: 'stream.error', event_data: { message: 'boom' } }],
    })
  })
})
