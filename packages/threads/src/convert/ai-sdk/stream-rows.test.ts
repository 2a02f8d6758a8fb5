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
