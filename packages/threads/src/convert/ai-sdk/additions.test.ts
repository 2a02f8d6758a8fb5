/** What comes to messages after their thread was stored in them, and thread data that is not believed. */
import { manualClock } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { plain } from '../../../test/plain.ts'
import {
  agentTurn,
  answer,
  call,
  event,
  fullThread,
  request,
  response,
  text,
  thread,
  userTurn,
} from '../../../test/samples.ts'
import { validateThread, type AgentTurn, type Thread } from '../../index.ts'
import { fromUIMessages } from './from-ui-messages.ts'
import { toUIMessages } from './to-ui-messages.ts'
import type { UIMessage, UIMessageChunk } from './types.ts'
import { fromUIChunks } from './ui-stream.ts'

const clock = manualClock(Date.UTC(2026, 3, 1))
const now = '2026-04-01T00:00:00.000Z'

/** A thread whose last turn ends with open calls, after sources, an event and an answered call. */
const pending = thread([
  userTurn('go'),
  agentTurn('ada', [response('ada', 1, text('over to bob'))]),
  agentTurn('bob', [
    response('bob', 2, call('c0')),
    request('bob', 3, answer('c0')),
    event('source.url', 4, { source_id: 's', url: 'https://x.test' }),
    response('bob', 5, call('c1'), call('c2')),
    event('tool.approval.requested', 6, { approval_id: 'p1', tool_call_id: 'c1' }),
    event('source.url', 7, { source_id: 's2', url: 'https://y.test' }),
    event('app.note', 8, 1),
  ]),
])

const said = (id: string, delta: string): UIMessageChunk[] => [
  { type: 'text-start', id },
  { type: 'text-delta', id, delta },
  { type: 'text-end', id },
]

/** The stored messages of the thread, and what a stream of another server adds to the last one. */
function continued(stored: Thread, ...chunks: readonly UIMessageChunk[]) {
  const messages = plain(toUIMessages(stored, { carry: 'all' }))
  return fromUIChunks(chunks, { messages, clock })
}

/** What was added to the pending thread, whose own turns are as they were. */
function addedTo(stored: Thread, ...chunks: readonly UIMessageChunk[]): unknown[] {
  const { value, lost } = continued(stored, ...chunks)
  expect(lost).toEqual([])
  expect(plain(value.turns.slice(0, stored.turns.length))).toEqual(plain(stored.turns))
  expect(validateThread(value).issues.filter(({ severity }) => severity === 'error')).toEqual([])
  return plain(value.turns.slice(stored.turns.length)) as unknown[]
}

const turn = (...messages: readonly object[]) => ({
  turn_type: 'agent',
  agent_id: 'bob',
  started_at: now,
  completed_at: now,
  messages,
})
const by = { timestamp: now, agent_id: 'bob' }
const happened = (event_type: string, event_data: unknown) => ({
  message_type: 'system',
  timestamp: now,
  event_type,
  event_data,
})
const finish: UIMessageChunk = { type: 'finish', finishReason: 'stop' }

describe('a stream that continues a message with its whole thread, and has no thread data of its own', () => {
  test('TP-44 an output, then text, a call, its output, a source and data are a new turn', () => {
    expect(
      addedTo(
        pending,
        { type: 'start' },
        { type: 'tool-output-available', toolCallId: 'c2', output: 'two' },
        { type: 'start-step' },
        { type: 'source-url', sourceId: 's3', url: 'https://z.test' },
        ...said('t', 'Now'),
        { type: 'tool-input-available', toolCallId: 'c3', toolName: 'look_up', input: { q: 3 } },
        { type: 'tool-output-available', toolCallId: 'c3', output: 'three' },
        { type: 'finish-step' },
        { type: 'start-step' },
        ...said('u', 'Done'),
        { type: 'data-app.end', data: { ok: true } },
        { type: 'finish-step' },
        finish,
      ),
    ).toEqual([
      turn(
        { message_type: 'request', ...by, parts: [answer('c2', 'look_up', 'two')] },
        happened('source.url', { source_id: 's3', url: 'https://z.test' }),
        { message_type: 'response', ...by, parts: [text('Now'), call('c3', 'look_up', { q: 3 })] },
        { message_type: 'request', ...by, parts: [answer('c3', 'look_up', 'three')] },
        { message_type: 'response', ...by, parts: [text('Done')], finish_reason: 'stop' },
        happened('app.end', { ok: true }),
      ),
    ])
  })

  test.each<[string, UIMessageChunk, object]>([
    ['text', { type: 'text-start', id: 't' }, { parts: [text('')] }],
    [
      'reasoning',
      { type: 'reasoning-start', id: 'r' },
      { parts: [{ part_kind: 'thinking', content: '' }] },
    ],
    [
      'a file',
      { type: 'file', url: 'https://x.test/a.png', mediaType: 'image/png' },
      { parts: [{ part_kind: 'file', content: { url: 'https://x.test/a.png' } }] },
    ],
    [
      'a call',
      { type: 'tool-input-available', toolCallId: 'n', toolName: 'f', input: {} },
      { parts: [{ part_kind: 'tool-call', tool_call_id: 'n' }] },
    ],
    ['data', { type: 'data-x', data: 0 }, { event_type: 'x', event_data: 0 }],
    [
      'a message to the run',
      { type: 'steering-message', id: 's', parts: [{ type: 'text', text: 'wait' }] },
      { parts: [{ part_kind: 'user-prompt', content: 'wait' }] },
    ],
  ])('TP-44 %s without a step of its own is kept', (_, chunk, message) => {
    expect(addedTo(pending, chunk, finish)).toMatchObject([{ messages: [message] }])
  })

  test('TP-44 a source or custom content in a step of its own is kept', () => {
    for (const chunk of [
      { type: 'source-url', sourceId: 'n', url: 'https://n.test' },
      { type: 'source-document', sourceId: 'n', mediaType: 'x/y', title: 'N' },
      { type: 'custom', kind: 'acme.box' },
    ] as const)
      expect(addedTo(pending, { type: 'start-step' }, chunk, finish)).toHaveLength(1)
  })

  test('TP-44 nothing new adds nothing', () => {
    expect(addedTo(pending, { type: 'start' }, finish)).toEqual([])
    expect(addedTo(fullThread(), finish)).toEqual([])
  })

  test('TP-44 metadata of the stream is kept on the turn that it came with', () => {
    const noted = thread([
      userTurn('go'),
      {
        ...agentTurn('ada', [response('ada', 1, text('a'))]),
        client_metadata: { kept: 1 },
      } as AgentTurn,
    ])
    const stream = [{ type: 'start', messageMetadata: { model: 'x' } }, ...said('t', 'b')] as const
    const { value } = continued(noted, ...stream, finish)
    expect(value.turns.slice(1)).toMatchObject([
      { client_metadata: { kept: 1 } },
      { messages: [{ parts: [text('b')] }], client_metadata: { model: 'x' } },
    ])
    const alone = continued(
      noted,
      { type: 'message-metadata', messageMetadata: { model: 'y' } },
      finish,
    )
    expect(alone.value.turns.slice(1)).toEqual([
      { ...noted.turns[1], client_metadata: { kept: 1, model: 'y' } },
    ])
  })

  test.each<[string, UIMessageChunk[], string, string[]]>([
    ['an error', [{ type: 'error', errorText: 'no' }], 'error', ['stream.error']],
    ['an abort', [{ type: 'abort', reason: 'tired' }], 'tired', ['stream.aborted']],
    ['a cut', [], 'network_failure', []],
  ])('TP-44 %s is recorded: on new content, else on the last turn', (_, end, reason, events) => {
    const marks = { completion_status: 'interrupted', interruption: { reason } }
    const happenedIn = (agent: unknown) =>
      (agent as AgentTurn).messages.flatMap((message) =>
        message.message_type === 'system' ? [message.event_type] : [],
      )
    const [added] = addedTo(pending, { type: 'start-step' }, ...said('t', 'Ha'), ...end)
    expect(added).toMatchObject(marks)
    expect(happenedIn(added)).toEqual(events)
    const { value } = continued(pending, ...end)
    expect(value.turns).toHaveLength(pending.turns.length)
    const last = value.turns.at(-1)
    expect(last).toMatchObject(marks)
    expect(happenedIn(last)).toEqual([...happenedIn(pending.turns.at(-1)), ...events])
    expect(validateThread(value).valid).toBe(true)
    // A turn that was interrupted before keeps its own reason.
    const cut = {
      ...(pending.turns.at(-1) as AgentTurn),
      ...marks,
      interruption: { reason: 'own' },
    }
    const again = continued(thread([...pending.turns.slice(0, -1), cut as never]), ...end)
    expect(again.value.turns.at(-1)).toMatchObject({ interruption: { reason: 'own' } })
  })
})

test('TP-44 the same holds for messages from a store, without a stream', () => {
  const messages = plain(toUIMessages(pending, { carry: 'all' })) as UIMessage[]
  messages[1]!.parts.push({ type: 'step-start' }, { type: 'text', text: 'More' })
  messages[0]!.parts.push({ type: 'text', text: 'Also' })
  const { value, lost } = fromUIMessages(messages, { clock, carrier: 'trust' })
  expect(plain(value.turns)).toEqual([
    ...plain(pending.turns),
    turn({ message_type: 'response', ...by, parts: [text('More')] }),
  ])
  expect(lost).toEqual([
    { pointer: '/0/parts/1', reason: 'a restored user turn has no place for a new part' },
  ])
})

describe('thread data that is not believed', () => {
  const orphan = thread([
    userTurn([answer('gone'), { part_kind: 'user-prompt', content: 'go' }]),
    agentTurn('ada', [response('ada', 1, text('a'))]),
    agentTurn('bob', [request('bob', 2, answer('lost')), response('bob', 3, text('b'))]),
  ])

  test.each(['public', 'all'] as const)('TP-44 its data parts are reported (%s)', (carry) => {
    const messages = plain(toUIMessages(orphan, { carry }))
    const { value, lost } = fromUIMessages(messages, { clock })
    const hidden = messages.flatMap(({ parts }, index) =>
      parts.flatMap(({ type }, at) =>
        type.startsWith('data-tp-') ? [`/${index}/parts/${at}`] : [],
      ),
    )
    expect(hidden).toHaveLength(3)
    const named = lost.map(({ pointer }) => pointer).filter((one) => !one.includes('/metadata/'))
    expect(named).toEqual(hidden)
    expect(value.turns).toHaveLength(2)
    expect(JSON.stringify(value)).not.toMatch(/gone|lost|bob|tp-/)
  })

  test('TP-44 outcomes and agents that read differently are named, each at its place', () => {
    const ended = (id: string, fields: object) => ({ ...answer(id, 'f', 'x'), ...fields })
    const document = thread([
      agentTurn('ada', [
        response('ada', 1, call('a', 'f'), call('b', 'f'), call('c', 'f'), call('d', 'f')),
        request(
          'ada',
          2,
          ended('a', { status: 'error', outcome: 'interrupted' }) as never,
          ended('b', { status: 'error', outcome: 'failed' }) as never,
          ended('c', { status: 'validation_error' }) as never,
          { part_kind: 'retry-prompt', tool_name: 'f', tool_call_id: 'd', content: 'again' },
        ),
      ]),
    ])
    const messages = plain(toUIMessages(document))
    const places = messages.flatMap(({ parts }, index) =>
      parts.flatMap((part, at) =>
        ['a', 'c', 'd'].includes((part as { toolCallId?: string }).toolCallId ?? '')
          ? [`/${index}/parts/${at}/resultProviderMetadata/threadprotocol`]
          : [],
      ),
    )
    expect(places).toHaveLength(3)
    const { lost } = fromUIMessages(messages, { clock })
    expect(lost.map(({ pointer }) => pointer)).toEqual(['/0/metadata/threadprotocol', ...places])
    const known = { agent_id: 'ada', agent_name: 'Ada' }
    const asAda = fromUIMessages(messages, { clock, agent: known })
    expect(asAda.lost.map(({ pointer }) => pointer)).toEqual(places)
    expect(fromUIMessages(messages, { clock, carrier: 'trust' }).lost).toEqual([])
  })

  test('TP-44 losses are counted in the parts as they were given', () => {
    const parts = [
      { type: 'data-tp-turn', id: 'x', data: {} },
      { type: 'step-start' },
      { type: 'tool-f', toolCallId: 'c', state: 'input-streaming', input: {} },
    ]
    const message = { id: 'm', role: 'assistant', parts } as unknown as UIMessage
    const { lost } = fromUIMessages([message], { clock })
    expect(lost.map(({ pointer }) => pointer)).toEqual(['/0/parts/0', '/0/parts/2'])
  })

  test('TP-44 what a stream says of its calls is known, also when its thread data is ignored', () => {
    const mine = { threadprotocol: { agent_id: 'eve' } }
    const called = (toolCallId: string): UIMessageChunk[] => [
      { type: 'tool-input-start', toolCallId, toolName: 'f', providerMetadata: mine },
      { type: 'tool-input-delta', toolCallId, inputTextDelta: '{ "t": 18.0 }' },
      {
        type: 'tool-input-available',
        toolCallId,
        toolName: 'f',
        input: { t: 18 },
        providerMetadata: mine,
      },
    ]
    const chunks: UIMessageChunk[] = [
      ...called('a'),
      ...called('b'),
      {
        type: 'tool-input-error',
        toolCallId: 'c',
        toolName: 'f',
        input: {},
        errorText: 'bad',
        providerMetadata: mine,
      },
      { type: 'tool-output-available', toolCallId: 'b', output: 2 },
      { type: 'tool-output-available', toolCallId: 'a', output: 1 },
      finish,
    ]
    const read = (carrier: 'ignore' | 'trust') =>
      (fromUIChunks(chunks, { clock, carrier }).value.turns[0] as AgentTurn).messages.flatMap(
        (message) => ('parts' in message ? message.parts : []),
      )
    expect(read('ignore')).toEqual(read('trust'))
    expect(read('ignore')).toMatchObject([
      { tool_call_id: 'a', args: '{ "t": 18.0 }' },
      { tool_call_id: 'b', args: '{ "t": 18.0 }' },
      { tool_call_id: 'c' },
      { part_kind: 'retry-prompt', tool_call_id: 'c' },
      { tool_call_id: 'b', content: 2 },
      { tool_call_id: 'a', content: 1 },
    ])
  })
})
