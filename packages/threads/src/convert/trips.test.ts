import { manualClock, type MessageJSON } from '@skein/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { fromAgUiEvents, type AgUiEvent } from './ag-ui/index.ts'
import { fromUppMessages } from './upp/from-upp.ts'
import { toUppMessages } from './upp/to-upp.ts'

const options = { clock: manualClock() }
const numRuns = process.env['SKEIN_DEEP'] ? 1000 : 100
const word = fc.string({ unit: 'grapheme', maxLength: 10 })
const id = fc.stringMatching(/^[a-z0-9_]{1,8}$/)
const object = fc.dictionary(id, fc.oneof(word, fc.integer(), fc.boolean(), fc.constant(null)), {
  maxKeys: 3,
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
      data: fc.record({ $bytes: fc.base64String({ maxLength: 12 }) }),
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
        const messages = list as unknown as MessageJSON[]
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
