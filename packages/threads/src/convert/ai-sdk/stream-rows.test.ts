/** Rows about UI streams, on streams written here; the recorded ones are beside the bridge. */
import { manualClock } from '@skein/base'
import { expect, test } from 'vitest'
import { everyKind, pausedRun } from '../../../test/pydantic-samples.ts'
import {
  UIStreamDecoder,
  encodeUIMessage,
  fromUIChunks,
  toUIMessages,
  type UIMessageChunk,
} from './index.ts'
import { fromPydanticAI, toPydanticAI } from '../pydantic-ai/index.ts'
import type { AgentTurn, SystemMessage, Thread } from '../../index.ts'

const clock = manualClock(Date.UTC(2026, 0, 1))
const agent = { agent_id: 'ada', agent_name: 'Ada' }

function decode(...chunks: readonly object[]): ReturnType<typeof fromUIChunks> {
  const all = [
    { type: 'start', messageId: 'm1' },
    { type: 'start-step' },
    ...chunks,
    { type: 'finish-step' },
    { type: 'finish' },
  ]
  return fromUIChunks(all as UIMessageChunk[], { clock, agent })
}

function messages(thread: Thread): AgentTurn['messages'] {
  return thread.turns.flatMap((turn) => (turn.turn_type === 'agent' ? turn.messages : []))
}

function events(thread: Thread): SystemMessage[] {
  return messages(thread).filter((message) => message.message_type === 'system')
}

test('TP-42 text, thinking, tool input, tool output and data become parts and events', () => {
  const { value, lost } = decode(
    { type: 'reasoning-start', id: 'r' },
    { type: 'reasoning-delta', id: 'r', delta: 'h' },
    { type: 'text-start', id: 't' },
    { type: 'reasoning-delta', id: 'r', delta: 'm' },
    { type: 'reasoning-end', id: 'r' },
    { type: 'text-delta', id: 't', delta: 'Let me ' },
    { type: 'text-delta', id: 't', delta: 'look.' },
    { type: 'text-end', id: 't' },
    { type: 'tool-input-available', toolCallId: 'c', toolName: 'look_up', input: { q: 1 } },
    { type: 'tool-output-available', toolCallId: 'c', output: { n: 2 } },
    { type: 'data-state.update', data: { open: true } },
  )
  expect(lost).toEqual([])
  const [response, ...rest] = messages(value)
  expect(response).toMatchObject({
    message_type: 'response',
    agent_id: 'ada',
    parts: [
      { part_kind: 'thinking', content: 'hm' },
      { part_kind: 'text', content: 'Let me look.' },
      { part_kind: 'tool-call', tool_name: 'look_up', tool_call_id: 'c', args: { q: 1 } },
    ],
  })
  expect(rest.find(({ message_type }) => message_type === 'request')).toMatchObject({
    parts: [
      {
        part_kind: 'tool-return',
        tool_name: 'look_up',
        tool_call_id: 'c',
        status: 'success',
        content: { n: 2 },
      },
    ],
  })
  expect(events(value)).toMatchObject([{ event_type: 'state.update', event_data: { open: true } }])
})

test('TP-42 every chunk of a response: the whole turn that it becomes', () => {
  const told = { pydantic_ai: { id: 'x', provider_name: 'p', provider_details: { d: 1 } } }
  const fields = { provider_name: 'p', provider_details: { d: 1 } }
  const own = { toolCallId: 'own', toolName: 'search', providerExecuted: true }
  const call = (toolCallId: string) => [
    { type: 'tool-input-available', toolCallId, toolName: 'f', input: {} },
    { type: 'tool-output-available', toolCallId, output: 'so far', preliminary: true },
  ]
  const { value, lost } = decode(
    { type: 'data-before', data: 1 },
    { type: 'text-start', id: 't', providerMetadata: told },
    { type: 'text-end', id: 't', citations: [{ n: 1 }] },
    { type: 'reasoning-start', id: 'r' },
    { type: 'reasoning-end', id: 'r', providerMetadata: told },
    { type: 'tool-input-available', ...own, input: { q: 1 }, providerMetadata: told },
    { type: 'tool-output-available', ...own, output: [2], providerMetadata: told },
    ...call('a'),
    ...call('b'),
    { type: 'tool-output-available', toolCallId: 'b', output: 'B', providerMetadata: told },
    { type: 'tool-output-available', toolCallId: 'a', output: 'A' },
    { type: 'source-document', sourceId: 's', mediaType: 'x/y', title: 'T', filename: 'f.pdf' },
    { type: 'data-after', id: 'd', data: 2 },
  )
  expect(lost).toEqual([])
  const time = '2026-01-01T00:00:00.000Z'
  const said = { timestamp: time, agent_id: 'ada' }
  const happened = (event_type: string, event_data: unknown, rest: object = {}) => ({
    message_type: 'system',
    timestamp: time,
    event_type,
    event_data,
    ...rest,
  })
  const returned = (tool_call_id: string, content: unknown, rest: object = {}) => ({
    part_kind: 'tool-return',
    tool_name: 'f',
    tool_call_id,
    status: 'success',
    content,
    ...rest,
  })
  const asked = { part_kind: 'tool-call', tool_name: 'f', args: {} }
  const search = { tool_name: 'search', tool_call_id: 'own', id: 'x', ...fields }
  expect(JSON.parse(JSON.stringify(value.turns))).toEqual([
    {
      turn_type: 'agent',
      turn_id: 'm1',
      agent_id: 'ada',
      started_at: time,
      completed_at: time,
      messages: [
        happened('before', 1),
        {
          message_type: 'response',
          ...said,
          parts: [
            { part_kind: 'text', content: '', citations: [{ n: 1 }], id: 'x', ...fields },
            { part_kind: 'thinking', content: '', thinking_id: 'x', ...fields },
            { part_kind: 'builtin-tool-call', args: { q: 1 }, ...search },
            { part_kind: 'builtin-tool-return', status: 'success', content: [2], ...search },
            { ...asked, tool_call_id: 'a' },
            { ...asked, tool_call_id: 'b' },
          ],
        },
        {
          message_type: 'request',
          ...said,
          parts: [returned('b', 'B', { id: 'x', ...fields }), returned('a', 'A')],
        },
        happened('source.document', {
          source_id: 's',
          media_type: 'x/y',
          title: 'T',
          filename: 'f.pdf',
        }),
        happened('after', 2, { event_id: 'd' }),
      ],
    },
  ])
})

test('TP-48 each response has the agent that its parts name, and a new turn its own', () => {
  const by = (agent_id: string) => ({ providerMetadata: { threadprotocol: { agent_id } } })
  const { value } = decode(
    { type: 'text-start', id: 'a', ...by('bob') },
    { type: 'text-end', id: 'a' },
    { type: 'data-tp-turn', id: 'two', data: { turn_id: 'two', agent_id: 'cyd' } },
    { type: 'text-start', id: 'b' },
    { type: 'text-end', id: 'b' },
    { type: 'start-step' },
    { type: 'text-start', id: 'c', ...by('eve') },
    { type: 'text-end', id: 'c' },
  )
  const turns = value.turns as AgentTurn[]
  expect(turns.map(({ turn_id, agent_id }) => [turn_id, agent_id])).toEqual([
    ['m1', 'ada'],
    ['two', 'cyd'],
  ])
  const agents = turns.map((turn) => turn.messages.map((one) => 'agent_id' in one && one.agent_id))
  expect(agents).toEqual([['bob'], ['cyd', 'eve']])
})

test('TP-44 what went wrong before a stream was aborted is kept', () => {
  const { value } = decode(
    { type: 'error', errorText: 'first' },
    { type: 'abort', reason: 'enough' },
  )
  expect(events(value).map(({ event_type, event_data }) => [event_type, event_data])).toEqual([
    ['stream.error', { message: 'first' }],
    ['stream.aborted', { reason: 'enough' }],
  ])
  expect(value.turns[0]).toMatchObject({
    completion_status: 'interrupted',
    interruption: { reason: 'enough' },
  })
})

test('TP-43 data of a continued message is replaced by its type and id, in whatever step it stands', () => {
  const message = {
    id: 'm1',
    role: 'assistant',
    parts: [
      { type: 'step-start' },
      { type: 'data-note', id: 'n', data: 1 },
      { type: 'step-start' },
      { type: 'data-other', id: 'n', data: 2 },
    ],
  } as const
  const decoder = new UIStreamDecoder({ messages: [message as never], clock, agent })
  decoder.push({ type: 'data-note', id: 'n', data: 3 })
  decoder.push({ type: 'data-note', id: 'o', data: 4 })
  expect(decoder.messages[0]?.parts.filter(({ type }) => type !== 'step-start')).toEqual([
    { type: 'data-note', id: 'n', data: 3 },
    { type: 'data-other', id: 'n', data: 2 },
    { type: 'data-note', id: 'o', data: 4 },
  ])
  expect(message.parts[1]).toEqual({ type: 'data-note', id: 'n', data: 1 })
})

test('TP-43 data-X becomes the event X, dots and hyphens included', () => {
  const names = [
    'agent.handoff',
    'app-score-2',
    'x',
    'a.b-c_d',
    'my-data-set',
    'data-data-',
    'data-',
  ]
  for (const name of names) {
    const { value } = decode({ type: `data-${name}`, data: { name } })
    expect(events(value)).toMatchObject([{ event_type: name, event_data: { name } }])
  }
})

test('TP-44 no chunk is lost in silence: it leaves a trace, is named in the report, or is refused', () => {
  const traces: readonly [object, RegExp][] = [
    [
      { type: 'source-url', sourceId: 's', url: 'https://example.org/trace' },
      /source\.url.*example\.org\/trace/,
    ],
    [
      { type: 'source-document', sourceId: 's', mediaType: 'x/y', title: 'Trace' },
      /source\.document.*Trace/,
    ],
    [{ type: 'file', url: 'https://example.org/trace.png', mediaType: 'image/png' }, /trace\.png/],
    [
      { type: 'reasoning-file', url: 'https://example.org/trace.png', mediaType: 'image/png' },
      /trace\.png/,
    ],
    [{ type: 'custom', kind: 'acme.trace' }, /acme\.trace/],
    [{ type: 'message-metadata', messageMetadata: { trace: 1 } }, /"trace":1/],
    [{ type: 'error', errorText: 'trace' }, /stream\.error.*trace/],
    [{ type: 'abort', reason: 'trace' }, /trace|abort/],
    [{ type: 'data-note', data: 'trace', transient: true }, /data-note/],
    [
      { type: 'steering-message', id: 's', parts: [{ type: 'text', text: 'trace' }] },
      /trace|steering-message/,
    ],
  ]
  for (const [chunk, trace] of traces) {
    const { value, lost } = decode(chunk)
    expect(JSON.stringify({ turns: value.turns, lost })).toMatch(trace)
  }
  expect(() => decode({ type: 'mystery' })).toThrow(
    expect.objectContaining({ code: 'UI_CHUNK_UNKNOWN' }),
  )
})

test('TP-44 approvals and denials leave events, and a denial is no failure', () => {
  const { value } = decode(
    { type: 'tool-input-available', toolCallId: 'c', toolName: 'delete', input: {} },
    { type: 'tool-approval-request', approvalId: 'p', toolCallId: 'c' },
    { type: 'tool-approval-response', approvalId: 'p', approved: false, reason: 'no' },
    { type: 'tool-output-denied', toolCallId: 'c' },
  )
  expect(events(value).map(({ event_type }) => event_type)).toEqual([
    'tool.approval.requested',
    'tool.approval.responded',
  ])
  expect(JSON.stringify(value.turns)).toContain('"outcome":"denied"')
})

/** The thread as the client rebuilds it from the stream of the last response. */
function throughStream(thread: Thread, carry: 'all' | 'public'): Thread {
  const chat = toUIMessages(thread, { carry })
  const decoder = new UIStreamDecoder({ messages: chat.slice(0, -1), clock, agent })
  for (const chunk of encodeUIMessage(chat.at(-1)!)) decoder.push(chunk)
  return decoder.end().value
}

test('TP-54 server and client make the same thread: from messages and from their stream', () => {
  for (const history of [pausedRun(), everyKind()]) {
    const { value: server, configs } = fromPydanticAI(history, { agentId: 'ada', clock })
    const client = throughStream(server, 'all')
    expect(client.turns).toEqual(server.turns)
    expect(toPydanticAI(client, { configs }).value).toEqual(toPydanticAI(server, { configs }).value)
  }
})

test('TP-54 without the carried thread, what the model said and did is the same', () => {
  const { value: server } = fromPydanticAI(pausedRun(), { agentId: 'ada', clock })
  const client = throughStream(server, 'public')
  expect(declared(client)).toEqual(declared(server))
})

/** Text, calls and outcomes in order: what no client may see or set (usage, provider ids, times) is left aside. */
function declared(thread: Thread): unknown[] {
  const parts = thread.turns.flatMap((turn) =>
    turn.turn_type === 'user'
      ? turn.parts
      : turn.messages.flatMap((message) => ('parts' in message ? message.parts : [])),
  )
  const settled = parts.flatMap((part) =>
    part.part_kind === 'tool-return' ? [[part.tool_call_id, part.status, part.content]] : [],
  )
  return [
    parts.flatMap((part) => (part.part_kind === 'text' ? [part.content] : [])),
    parts.flatMap((part) =>
      part.part_kind === 'tool-call' ? [[part.tool_call_id, part.tool_name, part.args]] : [],
    ),
    // Returns of one step arrive in the order of the calls, whichever run they came from.
    settled.filter(([id]) => id !== 'zz').toSorted(),
  ]
}
