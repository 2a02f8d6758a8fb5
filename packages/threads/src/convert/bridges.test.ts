import { manualClock } from '@skein/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { arbitraryThread } from '../../test/arbitrary-thread.ts'
import {
  agentTurn,
  answer,
  call,
  event,
  fullThread,
  request,
  response,
  text,
  thread as sampleThread,
  userTurn,
} from '../../test/samples.ts'
import { withoutLost } from '../../test/without-lost.ts'
import type { Converted } from '../issue.ts'
import type { MessagePart } from '../document/part.ts'
import type { Thread } from '../document/thread.ts'
import { validateThread } from '../document/validate.ts'
import { fromAgUiEvents, toAgUiEvents } from './ag-ui/index.ts'
import { toOtelMessages } from './otel.ts'
import { fromUppMessages } from './upp/from-upp.ts'
import { toUppMessages } from './upp/to-upp.ts'

const options = { agent: { agent_id: 'ada', agent_name: 'Ada' }, clock: manualClock() }
const numRuns = process.env['SKEIN_DEEP'] ? 1000 : 100

const bridges: Record<
  string,
  { to(thread: Thread): Converted<unknown>; from(value: never): Converted<Thread> }
> = {
  UPP: { to: toUppMessages, from: (value) => fromUppMessages(value, options) },
  'AG-UI': { to: toAgUiEvents, from: (value) => fromAgUiEvents(value, options) },
}

describe.each(Object.entries(bridges))('%s', (_, { to, from }) => {
  test('everything that was not reported as lost comes back', () => {
    fc.assert(
      fc.property(arbitraryThread, (thread) => {
        const { value, lost } = to(thread)
        const back = from(value as never)
        expect(back.lost).toEqual([])
        expect(back.value.turns).toMatchObject(
          withoutLost(thread.turns, lost, '/turns') as object[],
        )
      }),
      { seed: 11, numRuns },
    )
  })

  test('gives a valid thread, and leaves its source alone', () => {
    fc.assert(
      fc.property(arbitraryThread, (thread) => {
        const before = JSON.stringify(thread)
        const { value } = from(to(thread).value as never)
        expect(JSON.stringify(thread)).toBe(before)
        expect(validateThread(value).issues.filter((issue) => issue.severity === 'error')).toEqual(
          [],
        )
      }),
      { seed: 12, numRuns: Math.ceil(numRuns / 3) },
    )
  })

  test('reports events, attribution and unknown parts instead of dropping them', () => {
    const odd = sampleThread([
      agentTurn('ada', [
        response('ada', 1, text('hi'), { part_kind: 'hologram', size: 3 } as never),
        { ...event('app.note', 2, { a: 1 }), source_agent: 'ada' },
      ]),
    ])
    const pointers = to(odd).lost.map((loss) => loss.pointer)
    expect(pointers).toContain('/turns/0/messages/0/parts/1')
    expect(pointers.some((pointer) => pointer.startsWith('/turns/0/messages/1'))).toBe(true)
    expect(pointers).toContain('/turns/0/agent_id')
    expect(pointers).toContain('/agents')
  })

  test('converts the full sample', () => {
    const { value } = from(to(fullThread()).value as never)
    expect(validateThread(value).issues.filter((issue) => issue.severity === 'error')).toEqual([])
  })
})

test('TP-29 a user turn is a message of UPP, also without content; its results stand before its words', () => {
  const prompt = { part_kind: 'user-prompt', content: 'hi' } as const
  const messages = (parts: readonly MessagePart[]) =>
    toUppMessages(sampleThread([{ ...userTurn(parts), turn_id: 'u' }])).value.map((one) => [
      one.id,
      one.type,
    ])
  expect(messages([])).toEqual([['u', 'user']])
  expect(messages([prompt])).toEqual([['u', 'user']])
  expect(messages([answer('a')])).toEqual([['u', 'tool_result']])
  expect(messages([prompt, answer('a')])).toEqual([
    ['u', 'tool_result'],
    ['u.user', 'user'],
  ])
})

describe('OpenTelemetry', () => {
  test('the last response is the output; every part has a type of the conventions', () => {
    const { value, lost } = toOtelMessages(fullThread())
    expect(value.output).toEqual([
      {
        role: 'assistant',
        name: 'bob',
        finish_reason: 'stop',
        parts: [{ type: 'text', content: 'Done.' }],
      },
    ])
    expect(value.input.map((message) => message.role)).toEqual([
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ])
    expect(value.input[0]?.parts).toEqual([
      { type: 'text', content: 'Compare these.' },
      { type: 'uri', modality: 'image', mime_type: 'image/png', uri: 'https://example.org/a.png' },
      { type: 'blob', modality: 'image', mime_type: 'image/png', content: 'aGk/' },
    ])
    expect(value.input[1]).toMatchObject({
      finish_reason: 'tool_call',
      parts: [
        { type: 'reasoning', content: 'Two pictures.' },
        { type: 'text' },
        { type: 'tool_call', id: 'c1', name: 'look_up', arguments: { q: 'c1' } },
        { type: 'tool_call', id: 'c2', arguments: '{"w": 1.0}' },
      ],
    })
    const pointers = lost.map((loss) => loss.pointer)
    expect(pointers).toContain('/turns/1/messages/1/parts/0/signature')
    expect(pointers).toContain('/turns/1/messages/1/usage')
  })

  test('no part is left out without a word', () => {
    const types = ['text', 'reasoning', 'tool_call', 'tool_call_response', 'blob', 'uri', 'file']
    fc.assert(
      fc.property(arbitraryThread, (thread) => {
        const { value, lost } = toOtelMessages(thread)
        const shown = [...value.input, ...value.output].flatMap((message) => message.parts)
        expect(shown.every((part) => types.includes(part.type))).toBe(true)
        const left = withoutLost(thread.turns, lost, '/turns') as {
          parts?: unknown[]
          messages?: { parts: unknown[] }[]
        }[]
        const parts = left.flatMap((turn) => [
          ...(turn.parts ?? []),
          ...(turn.messages ?? []).flatMap((message) => message.parts),
        ])
        const items = (parts as { content?: unknown; part_kind?: string }[]).map(
          ({ content, part_kind }) =>
            part_kind === 'user-prompt' && Array.isArray(content)
              ? content.length
              : part_kind === 'thinking' && content === ''
                ? 0
                : 1,
        )
        expect(shown).toHaveLength(items.reduce((sum, count) => sum + count, 0))
      }),
      { seed: 13, numRuns },
    )
  })
})

describe('TP-44 every part of a thread, in each format', () => {
  const url = { kind: 'image-url', url: 'https://x.test/a', identifier: 'i' }
  const bytes = { kind: 'binary', data: '-_==', media_type: 'audio/wav', identifier: 'i' }
  const file = (content: object) => ({ part_kind: 'file', content })
  const whole = sampleThread([
    userTurn([
      {
        part_kind: 'user-prompt',
        content: [
          'Hi',
          url,
          bytes,
          { kind: 'document-url', url: 'u', identifier: 'i', media_type: 'application/pdf' },
          { kind: 'text-content', content: 'tc' },
          { kind: 'uploaded-file', file_id: 'f', provider_name: 'p' },
          { kind: 'cache-point' },
        ],
      },
      { part_kind: 'user-prompt', content: ['one'] },
      text('odd'),
    ] as never),
    agentTurn('ada', [
      {
        ...response(
          'ada',
          1,
          ...([
            text('a'),
            { part_kind: 'thinking', content: 'hm', signature: 's', provider_name: 'p' },
            { part_kind: 'thinking', content: '' },
            call('c1'),
            call('c2', 'g', '{"a":1}'),
            call('c3', 'g', 'oops'),
            call('c4', 'g', null),
            call('c5', 'g', [1]),
            text('after'),
            file({ ...bytes, media_type: 'image/png' }),
            file(bytes),
            file({ kind: 'binary', data: 'AAAA', media_type: 'application/zip', identifier: 'z' }),
            { part_kind: 'builtin-tool-call', tool_name: 's', tool_call_id: 'b', args: { q: 1 } },
            { part_kind: 'builtin-tool-return', tool_name: 's', tool_call_id: 'b', content: 2 },
            { part_kind: 'compaction', content: 'x' },
            { part_kind: 'native', name: 'n', metadata: { v: { a: 1 } } },
          ] as never[]),
        ),
        finish_reason: 'tool_call',
        usage: { input_tokens: 1 },
      },
      event('note', 2),
      request(
        'ada',
        3,
        ...([
          answer('c1'),
          { ...answer('c2'), status: 'error' },
          { ...answer('c3'), status: 'validation_error' },
          { part_kind: 'retry-prompt', content: 'again', tool_name: 'g', tool_call_id: 'c4' },
          { part_kind: 'retry-prompt', content: 'do' },
          { part_kind: 'retry-prompt', content: [{ type: 't', loc: [], msg: 'm' }] },
          { part_kind: 'user-prompt', content: 'and' },
        ] as never[]),
      ),
      response('ada', 4, text('end')),
    ]),
  ])
  const plain = (value: unknown) => JSON.parse(JSON.stringify(value)) as unknown
  /** Losses of parts and messages; those of the thread itself are the same for every format. */
  const partLosses = ({ lost }: Converted<unknown>, common: string) =>
    lost
      .filter(
        ({ pointer, reason }) =>
          /^\/turns\/\d+\/(?:parts|messages)/.test(pointer) && reason !== common,
      )
      .map(({ pointer, reason }) => [pointer, reason])

  test('TP-44 UPP messages', () => {
    const converted = toUppMessages(whole)
    const id = whole.thread_id
    expect(plain(converted.value)).toEqual([
      {
        id: `${id}:0`,
        timestamp: '2026-03-01T09:00:00.000Z',
        type: 'user',
        content: [
          { type: 'text', text: 'Hi' },
          { type: 'image', source: { type: 'url', url: 'https://x.test/a' }, mimeType: 'image/*' },
          { type: 'audio', data: { $bytes: '+/==' }, mimeType: 'audio/wav' },
          { type: 'document', source: { type: 'url', url: 'u' }, mimeType: 'application/pdf' },
          { type: 'text', text: 'tc' },
          { type: 'text', text: 'one' },
        ],
      },
      {
        id: `${id}:1.0`,
        timestamp: '2026-03-01T09:00:01.000Z',
        type: 'assistant',
        content: [
          { type: 'text', text: 'a' },
          { type: 'reasoning', text: 'hm' },
          { type: 'reasoning', text: '' },
          { type: 'text', text: 'after' },
          { type: 'image', source: { type: 'base64', data: '+/==' }, mimeType: 'image/png' },
          { type: 'audio', data: { $bytes: '+/==' }, mimeType: 'audio/wav' },
          { type: 'native', name: 'n', metadata: { v: { a: 1 } } },
        ],
        toolCalls: [
          { toolCallId: 'c1', toolName: 'look_up', arguments: { q: 'c1' } },
          { toolCallId: 'c2', toolName: 'g', arguments: { a: 1 } },
          { toolCallId: 'c3', toolName: 'g', arguments: { text: 'oops' } },
          { toolCallId: 'c4', toolName: 'g', arguments: {} },
          { toolCallId: 'c5', toolName: 'g', arguments: { text: '[1]' } },
        ],
      },
      {
        id: `${id}:1.2`,
        timestamp: '2026-03-01T09:00:03.000Z',
        type: 'tool_result',
        results: [
          { toolCallId: 'c1', result: 'found', toolName: 'look_up' },
          { toolCallId: 'c2', result: 'found', isError: true, toolName: 'look_up' },
          { toolCallId: 'c3', result: 'found', isError: true, toolName: 'look_up' },
          { toolCallId: 'c4', result: 'again', isError: true, toolName: 'g' },
        ],
      },
      {
        id: `${id}:1.2.user`,
        timestamp: '2026-03-01T09:00:03.000Z',
        type: 'user',
        content: [
          { type: 'text', text: 'do' },
          { type: 'text', text: 'and' },
        ],
      },
      {
        id: `${id}:1.3`,
        timestamp: '2026-03-01T09:00:04.000Z',
        type: 'assistant',
        content: [{ type: 'text', text: 'end' }],
      },
    ])
    expect(partLosses(converted, 'UPP has no field for it')).toEqual([
      ['/turns/0/parts/0/content/2/data', 'the URL-safe alphabet is not kept'],
      [
        '/turns/0/parts/0/content/4',
        'it becomes plain text: what accompanied the text is not kept',
      ],
      ['/turns/0/parts/0/content/5', 'UPP has no block for uploaded-file content'],
      ['/turns/0/parts/0/content/6', 'UPP has no block for cache-point content'],
      ['/turns/0/parts/1/content', 'a list of one text becomes a text'],
      ['/turns/0/parts/2', 'UPP has no block for a text part in a request'],
      ['/turns/1/messages/0/parts/4/args', 'UPP arguments are a value: their text is not kept'],
      ['/turns/1/messages/0/parts/5/args', 'UPP arguments are a value: their text is not kept'],
      ['/turns/1/messages/0/parts/6/args', 'UPP arguments are a value: their text is not kept'],
      ['/turns/1/messages/0/parts/7/args', 'UPP arguments are an object: they become text'],
      [
        '/turns/1/messages/0/parts/8',
        'UPP keeps calls apart: that this came after a call is not said',
      ],
      ['/turns/1/messages/0/parts/9/content/data', 'the URL-safe alphabet is not kept'],
      [
        '/turns/1/messages/0/parts/9',
        'UPP keeps calls apart: that this came after a call is not said',
      ],
      ['/turns/1/messages/0/parts/10/content/data', 'the URL-safe alphabet is not kept'],
      [
        '/turns/1/messages/0/parts/10',
        'UPP keeps calls apart: that this came after a call is not said',
      ],
      ['/turns/1/messages/0/parts/11', 'UPP has no block for a file part in an answer'],
      [
        '/turns/1/messages/0/parts/12',
        'UPP has no block for a builtin-tool-call part in an answer',
      ],
      [
        '/turns/1/messages/0/parts/13',
        'UPP has no block for a builtin-tool-return part in an answer',
      ],
      ['/turns/1/messages/0/parts/14', 'UPP has no block for a compaction part in an answer'],
      [
        '/turns/1/messages/0/parts/15',
        'UPP keeps calls apart: that this came after a call is not said',
      ],
      ['/turns/1/messages/1', 'UPP has no system events'],
      ['/turns/1/messages/2/parts/2/status', 'UPP knows one kind of error'],
      [
        '/turns/1/messages/2/parts/3/part_kind',
        'UPP knows one kind of error: a retry becomes an error',
      ],
      ['/turns/1/messages/2/parts/4/part_kind', 'UPP knows no retry: it becomes text of the user'],
      ['/turns/1/messages/2/parts/5', 'UPP has no block for a retry-prompt part in a request'],
    ])
    const fields = converted.lost.filter(({ reason }) => reason === 'UPP has no field for it')
    expect(fields.map(({ pointer }) => pointer)).toEqual([
      '/turns/0/parts/0/content/1/identifier',
      '/turns/0/parts/0/content/2/identifier',
      '/turns/0/parts/0/content/3/identifier',
      '/turns/1/messages/0/parts/1/signature',
      '/turns/1/messages/0/parts/1/provider_name',
      '/turns/1/messages/0/parts/9/content/identifier',
      '/turns/1/messages/0/parts/10/content/identifier',
      '/turns/1/messages/0/agent_id',
      '/turns/1/messages/0/finish_reason',
      '/turns/1/messages/0/usage',
      '/turns/1/messages/2/agent_id',
      '/turns/1/messages/3/agent_id',
    ])
  })

  test('TP-44 messages of the GenAI conventions', () => {
    const converted = toOtelMessages(whole)
    expect(plain(converted.value)).toEqual({
      input: [
        {
          role: 'user',
          parts: [
            { type: 'text', content: 'Hi' },
            { type: 'uri', modality: 'image', uri: 'https://x.test/a' },
            { type: 'blob', modality: 'audio', mime_type: 'audio/wav', content: '+/==' },
            { type: 'uri', modality: 'document', mime_type: 'application/pdf', uri: 'u' },
            { type: 'text', content: 'tc' },
            { type: 'file', modality: 'document', file_id: 'f' },
            { type: 'text', content: 'one' },
            { type: 'text', content: 'odd' },
          ],
        },
        {
          role: 'assistant',
          parts: [
            { type: 'text', content: 'a' },
            { type: 'reasoning', content: 'hm' },
            { type: 'tool_call', id: 'c1', name: 'look_up', arguments: { q: 'c1' } },
            { type: 'tool_call', id: 'c2', name: 'g', arguments: '{"a":1}' },
            { type: 'tool_call', id: 'c3', name: 'g', arguments: 'oops' },
            { type: 'tool_call', id: 'c4', name: 'g', arguments: null },
            { type: 'tool_call', id: 'c5', name: 'g', arguments: [1] },
            { type: 'text', content: 'after' },
            { type: 'blob', modality: 'image', mime_type: 'image/png', content: '+/==' },
            { type: 'blob', modality: 'audio', mime_type: 'audio/wav', content: '+/==' },
            { type: 'blob', modality: 'document', mime_type: 'application/zip', content: 'AAAA' },
            {
              type: 'server_tool_call',
              id: 'b',
              name: 's',
              server_tool_call: { type: 's', arguments: { q: 1 } },
            },
            {
              type: 'server_tool_call_response',
              id: 'b',
              server_tool_call_response: { type: 's', response: 2 },
            },
          ],
          name: 'ada',
          finish_reason: 'tool_call',
        },
        {
          role: 'tool',
          parts: [
            { type: 'tool_call_response', id: 'c1', response: 'found' },
            { type: 'tool_call_response', id: 'c2', response: 'found' },
            { type: 'tool_call_response', id: 'c3', response: 'found' },
            { type: 'tool_call_response', id: 'c4', response: 'again' },
            { type: 'tool_call_response', id: '', response: 'do' },
            { type: 'tool_call_response', id: '', response: [{ type: 't', loc: [], msg: 'm' }] },
          ],
        },
        { role: 'user', parts: [{ type: 'text', content: 'and' }] },
      ],
      output: [
        {
          role: 'assistant',
          parts: [{ type: 'text', content: 'end' }],
          name: 'ada',
          finish_reason: 'stop',
        },
      ],
    })
    const common = 'the GenAI conventions have no field for it'
    expect(partLosses(converted, common)).toEqual([
      ['/turns/0/parts/0/content/6', 'GenAI messages have no part for cache-point'],
      ['/turns/1/messages/0/parts/14', 'GenAI messages have no part for compaction'],
      ['/turns/1/messages/0/parts/15', 'GenAI messages have no part for native'],
      ['/turns/1/messages/1', 'GenAI messages have no system events'],
      ['/turns/1/messages/2/parts/3/part_kind', 'a retry becomes a response'],
      ['/turns/1/messages/2/parts/4/part_kind', 'a retry becomes a response'],
      ['/turns/1/messages/2/parts/5/part_kind', 'a retry becomes a response'],
    ])
    const fields = converted.lost.filter(({ reason }) => reason === common)
    expect(fields.map(({ pointer }) => pointer)).toEqual([
      '/turns/0/submitted_at',
      '/turns/0/parts/0/content/1/identifier',
      '/turns/0/parts/0/content/2/identifier',
      '/turns/0/parts/0/content/3/identifier',
      '/turns/0/parts/0/content/5/provider_name',
      '/turns/1/messages/0/timestamp',
      '/turns/1/messages/0/usage',
      '/turns/1/messages/0/parts/1/signature',
      '/turns/1/messages/0/parts/1/provider_name',
      '/turns/1/messages/0/parts/9/content/identifier',
      '/turns/1/messages/0/parts/10/content/identifier',
      '/turns/1/messages/0/parts/11/content/identifier',
      '/turns/1/messages/2/timestamp',
      '/turns/1/messages/2/parts/1/status',
      '/turns/1/messages/2/parts/2/status',
      '/turns/1/messages/3/timestamp',
    ])
    // A thread that does not end with an answer has no output.
    const asked = toOtelMessages(sampleThread([...whole.turns, userTurn('and now?', 5)]))
    expect(asked.value.output).toEqual([])
    expect(asked.value.input).toHaveLength(converted.value.input.length + 2)
  })
})
