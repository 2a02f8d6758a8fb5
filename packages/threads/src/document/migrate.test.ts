import { describe, expect, test } from 'vitest'
import { fullThread } from '../../test/samples.ts'
import {
  UnsupportedVersionError,
  stringifyThread,
  toModelMessages,
  toolCalls,
  validateThread,
  type AgentTurn,
} from '../index.ts'
import { migrateThread } from './migrate.ts'

function time(second: number): string {
  return `2025-06-01T08:00:${String(second).padStart(2, '0')}Z`
}

function registry(): object {
  return {
    ada: { agent_id: 'ada', agent_identifier: 'ada_v1', agent_name: 'Ada', created_at: time(0) },
    bob: { agent_id: 'bob', agent_identifier: 'bob_v1', agent_name: 'Bob', created_at: time(0) },
  }
}

function head(version: string): object {
  return {
    version,
    thread_id: 't',
    created_at: time(0),
    updated_at: time(59),
    title: 'Old',
    agents: registry(),
  }
}

describe('1.0.0', () => {
  const actions = [
    {
      action_type: 'system.agent_join',
      timestamp: time(0),
      sequence: 0,
      data: { agent_id: 'ada' },
    },
    {
      action_type: 'user_message',
      timestamp: time(1),
      sequence: 1,
      content: 'Hello?',
      action_id: 'u1',
    },
    {
      action_type: 'thinking',
      timestamp: time(2),
      sequence: 2,
      agent_id: 'ada',
      content: 'hm',
      provider_name: 'p',
      thinking_id: 'th',
      usage: { thinking_tokens: 4 },
    },
    {
      action_type: 'assistant_message',
      timestamp: time(3),
      sequence: 3,
      agent_id: 'ada',
      content: 'Let me look.',
      usage: { input_tokens: 5, output_tokens: 2 },
      finish_reason: 'tool_call',
      mood: 'calm',
    },
    {
      action_type: 'tool_call',
      timestamp: time(4),
      sequence: 4,
      agent_id: 'ada',
      tool_name: 'look',
      tool_call_id: 'c',
      args: { q: 1 },
    },
    {
      action_type: 'tool_return',
      timestamp: time(5),
      sequence: 5,
      tool_name: 'look',
      tool_call_id: 'c',
      status: 'success',
      content: { n: 2 },
    },
    {
      action_type: 'assistant_message',
      timestamp: time(6),
      sequence: 6,
      agent_id: 'ada',
      content: 'Found.',
    },
    {
      action_type: 'assistant_message',
      timestamp: time(7),
      sequence: 7,
      agent_id: 'ada',
      content: 'And more.',
    },
    {
      action_type: 'system.tool_grant',
      timestamp: time(8),
      sequence: 8,
      data: { tool_name: 'look' },
    },
    {
      action_type: 'assistant_message',
      timestamp: time(9),
      sequence: 9,
      agent_id: 'bob',
      content: [
        { type: 'text', text: 'Hi' },
        { type: 'image', image_base64: 'AAAA', media_type: 'image/png' },
      ],
    },
    {
      action_type: 'user_message',
      timestamp: time(10),
      sequence: 10,
      content: 'See',
      attachments: [
        {
          name: 'a.pdf',
          url: 'https://example.org/a.pdf',
          media_type: 'application/pdf',
          size_bytes: 9,
        },
      ],
    },
    { action_type: 'system.note', timestamp: time(11), sequence: 11, data: 1 },
  ]

  test('TP-51 actions become turns; what had to be assumed is said', () => {
    const { value, from, lost, inferred } = migrateThread(
      JSON.stringify({ ...head('1.0.0'), actions, parent_thread_id: 'p' }),
    )
    expect(from).toBe('1.0.0')
    expect(validateThread(value).issues).toEqual([])
    expect(value).toMatchObject({
      version: '2.0.0',
      title: 'Old',
      parent_thread_id: 'p',
      agents: { ada: { agent_identifier: 'ada_v1' } },
    })
    expect(value).not.toHaveProperty('actions')
    expect(value.turns.map((turn) => (turn.turn_type === 'user' ? 'user' : turn.agent_id))).toEqual(
      ['user', 'ada', 'bob', 'user', 'bob'],
    )
    const [, ada, bob, second, rest] = value.turns as AgentTurn[]
    expect(ada?.messages.map((message) => message.message_type)).toEqual([
      'system',
      'response',
      'request',
      'response',
      'response',
      'system',
    ])
    expect(ada?.messages[1]).toMatchObject({
      agent_id: 'ada',
      finish_reason: 'tool_call',
      usage: { input_tokens: 5, output_tokens: 2, thinking_tokens: 4 },
      parts: [
        { part_kind: 'thinking', content: 'hm', thinking_id: 'th', provider_name: 'p' },
        { part_kind: 'text', content: 'Let me look.', mood: 'calm' },
        { part_kind: 'tool-call', tool_call_id: 'c', args: { q: 1 } },
      ],
    })
    expect(ada?.messages[2]).toMatchObject({
      agent_id: 'ada',
      parts: [{ part_kind: 'tool-return', status: 'success', content: { n: 2 } }],
    })
    expect(ada?.messages[5]).toMatchObject({ event_type: 'tool.grant' })
    expect(bob?.messages[0]).toMatchObject({
      parts: [
        { part_kind: 'text', content: 'Hi' },
        { part_kind: 'file', content: { kind: 'binary', data: 'AAAA' } },
      ],
    })
    expect(second).toMatchObject({
      parts: [
        {
          content: [
            'See',
            {
              kind: 'document-url',
              url: 'https://example.org/a.pdf',
              vendor_metadata: { name: 'a.pdf', size_bytes: 9 },
            },
          ],
        },
      ],
    })
    expect(rest?.messages).toMatchObject([{ event_type: 'system.note', event_data: 1 }])
    expect(JSON.stringify(value)).not.toContain('"answered"')
    expect(lost).toEqual([])
    expect(inferred.length).toBeGreaterThan(0)
  })

  test('TP-51 sequence numbers order the actions; number text is kept', () => {
    const source = JSON.stringify({
      ...head('1.0.0'),
      actions: [actions[4], actions[1], actions[5]],
    }).replace('"n":2', '"n":2.0')
    const { value, inferred } = migrateThread(source)
    expect(value.turns.map(({ turn_type }) => turn_type)).toEqual(['user', 'agent'])
    expect(inferred.some(({ reason }) => reason.includes('sequence'))).toBe(true)
    expect(stringifyThread(value)).toContain('"n":2.0')
  })

  test('a thread without agents loses its events, and says so', () => {
    const { value, lost } = migrateThread({
      ...head('1.0.0'),
      agents: {},
      actions: [actions[0], 7],
    })
    expect(value.turns).toEqual([])
    expect(lost).toHaveLength(2)
  })
})

describe('0.0.3 and 0.0.4', () => {
  test('TP-51 0.0.3: content behind a reference, relationships and client metadata are kept', () => {
    const returned = {
      part_kind: 'tool-return',
      tool_name: 'r',
      tool_call_id: 'c',
      status: 'success',
      content_ref: { uri: 's3://b/k', hash: 'sha256:00' },
    }
    const { value, inferred } = migrateThread({
      ...head('0.0.3'),
      relationships: { links: [{ thread_id: 'o', relation: 'spawned_from' }] },
      turns: [
        {
          turn_type: 'user',
          submitted_at: time(1),
          parts: [{ part_kind: 'user-prompt', content: 'x' }],
          client_metadata: { 'ui:mode': 'a' },
        },
        {
          turn_type: 'agent',
          agent_id: 'ada',
          started_at: time(2),
          completed_at: time(4),
          messages: [
            {
              message_type: 'response',
              timestamp: time(2),
              agent_id: 'ada',
              parts: [{ part_kind: 'tool-call', tool_name: 'r', tool_call_id: 'c', args: {} }],
            },
            {
              message_type: 'request',
              timestamp: time(4),
              agent_id: 'ada',
              parts: [returned, { part_kind: 'custom:plan', steps: [1] }],
            },
          ],
        },
      ],
    })
    expect(validateThread(value).valid).toBe(true)
    expect(value).toMatchObject({
      version: '2.0.0',
      relationships: { links: [{ relation: 'spawned_from' }] },
      turns: [
        { client_metadata: { 'ui:mode': 'a' } },
        {
          messages: [
            {},
            { parts: [{ content: null, content_ref: { uri: 's3://b/k' } }, { steps: [1] }] },
          ],
        },
      ],
    })
    expect(inferred).toEqual([
      { pointer: '/turns/1/messages/1/parts/0/content', reason: expect.any(String) as string },
    ])
  })

  test('TP-51 0.0.4: interrupted turns, event names of the first tier, fields left out', () => {
    const { value, inferred } = migrateThread({
      ...head('0.0.4'),
      turns: [
        {
          turn_type: 'agent',
          agent_id: 'ada',
          started_at: time(1),
          completion_status: 'interrupted',
          interruption: { reason: 'user_cancelled', interrupted_at: time(9) },
          messages: [
            {
              message_type: 'response',
              timestamp: time(2),
              parts: [
                { part_kind: 'tool-call', tool_name: 'w', args: {} },
                { part_kind: 'tool-call', tool_name: 'w', args: {} },
              ],
            },
            {
              message_type: 'request',
              timestamp: time(3),
              parts: [
                { part_kind: 'tool-return', tool_name: 'w', content: 1 },
                { part_kind: 'tool-return', tool_name: 'w', content: 2 },
              ],
            },
            {
              message_type: 'system',
              timestamp: time(4),
              event_type: 'data-tp-agent_handoff',
              event_data: {},
            },
            {
              message_type: 'system',
              timestamp: time(5),
              event_type: 'data-app-score',
              event_data: 1,
            },
          ],
        },
      ],
    })
    expect(validateThread(value).issues).toEqual([])
    expect(value.turns[0]).toMatchObject({
      completed_at: time(9),
      completion_status: 'interrupted',
      messages: [
        { agent_id: 'ada' },
        { parts: [{ status: 'success' }, {}] },
        { event_type: 'agent.handoff' },
        { event_type: 'data-app-score' },
      ],
    })
    expect(inferred.map(({ pointer }) => pointer)).toContain('/turns/0/completed_at')
    // Returns without an id answer the calls without one in the order in which they were made.
    const settled = toolCalls(value).map(({ answer }) => answer?.content)
    expect(settled).toEqual([1, 2])
    expect(toModelMessages(value, 'ada')).toHaveLength(2)
  })
})

test('TP-51 2.x is given back as it is, and a version nobody knows is a typed error', () => {
  const same = fullThread()
  expect(migrateThread(same)).toMatchObject({ from: '2.0.0', lost: [], inferred: [] })
  expect(migrateThread(same).value).toBe(same)
  expect(() => migrateThread({ version: '9.0.0' })).toThrow(UnsupportedVersionError)
  expect(() => migrateThread({})).toThrow(/no version/)
  expect(() => migrateThread({ ...head('0.0.4'), version: '0.1.0' })).toThrow(
    UnsupportedVersionError,
  )
})
