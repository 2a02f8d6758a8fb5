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

describe('1.0.0, action by action', () => {
  const act = (action_type: unknown, second: number, rest: object = {}) => ({
    action_type,
    timestamp: time(second),
    ...rest,
  })
  const ada = { agent_id: 'ada' }
  const migrate = (...actions: readonly unknown[]) =>
    migrateThread({ ...head('1.0.0'), actions: actions as never })

  test('a return keeps usage and an agent of its own, which nothing else of 2.0.0 could hold', () => {
    const call = { tool_name: 'look', tool_call_id: 'c1' }
    const { value } = migrate(
      act('tool_call', 1, { ...ada, ...call, args: {} }),
      act('tool_return', 2, { ...call, content: 1, agent_id: 'bob', usage: { input_tokens: 3 } }),
      act('tool_return', 3, { ...call, content: 2, ...ada }),
    )
    const parts = [
      expect.objectContaining({ content: 1, agent_id: 'bob', usage: { input_tokens: 3 } }),
      expect.not.objectContaining(ada),
    ]
    expect(value.turns).toMatchObject([{ messages: [{}, { parts }] }])
  })

  test('TP-51 runs, responses and returns are where they were, with their times and usage', () => {
    const { value, lost, inferred } = migrate(
      act('tool_return', 1, {
        tool_name: 'x',
        tool_call_id: 'gone',
        status: 'error',
        content: 'no',
        note: 1,
      }),
      act('user_message', 2, { content: 'Hi', user_id: 'u' }),
      act('system.ui_update', 3, { data: { a: 1 }, action_id: 'e1' }),
      act('system.context_switch', 4),
      act('tool_call', 5, {
        ...ada,
        tool_name: 'look',
        tool_call_id: 'c1',
        args: null,
        usage: { input_tokens: 1 },
      }),
      act('tool_call', 6, {
        ...ada,
        tool_name: 'look',
        tool_call_id: 'c2',
        args: '{}',
        usage: { input_tokens: 2 },
      }),
      act('assistant_message', 7, {
        agent_id: 'bob',
        content: 'Me too',
        usage: { output_tokens: 4 },
        finish_reason: 'stop',
      }),
      act('tool_return', 8, {
        tool_name: 'look',
        tool_call_id: 'c2',
        status: 'success',
        content: 2,
      }),
      act('tool_return', 9, {
        tool_name: 'look',
        tool_call_id: 'c1',
        status: 'success',
        content: 1,
      }),
      act('thinking', 10, {
        ...ada,
        content: 'hm',
        signature: 's',
        provider_name: 'p',
        thinking_id: 'th',
      }),
      act('assistant_message', 11, { ...ada, content: 'One' }),
      act('thinking', 12, { ...ada, content: 'more', provider_name: 'p' }),
      act('assistant_message', 13, { ...ada, content: 'Two' }),
      act(7, 14),
      'nothing',
    )
    const returned = (second: number, tool_call_id: string, content: unknown, rest: object) => ({
      part_kind: 'tool-return',
      tool_name: 'look',
      tool_call_id,
      content,
      timestamp: time(second),
      ...rest,
    })
    const called = (second: number, tool_call_id: string, args: unknown) => ({
      part_kind: 'tool-call',
      tool_name: 'look',
      tool_call_id,
      args,
      timestamp: time(second),
    })
    const message = (message_type: string, second: number, agent_id: string, rest: object) => ({
      message_type,
      timestamp: time(second),
      agent_id,
      ...rest,
    })
    const event = (second: number, event_type: string, event_data: unknown, rest = {}) => ({
      message_type: 'system',
      timestamp: time(second),
      event_type,
      event_data,
      ...rest,
    })
    const success = { status: 'success' }
    expect(value.turns).toStrictEqual([
      {
        turn_type: 'agent',
        agent_id: 'ada', // nobody made the call: the first of the registry
        started_at: time(1),
        completed_at: time(1),
        messages: [
          message('request', 1, 'ada', {
            parts: [returned(1, 'gone', 'no', { tool_name: 'x', status: 'error', note: 1 })],
          }),
        ],
      },
      {
        turn_type: 'user',
        submitted_at: time(2),
        parts: [{ part_kind: 'user-prompt', content: 'Hi' }],
        user_id: 'u',
      },
      {
        turn_type: 'agent',
        agent_id: 'ada',
        started_at: time(3), // the first of the events that waited for it
        completed_at: time(5),
        messages: [
          event(3, 'ui.update', { a: 1 }, { action_id: 'e1' }),
          event(4, 'context.switch', null),
          message('response', 5, 'ada', {
            parts: [called(5, 'c1', null), called(6, 'c2', '{}')],
            usage: { input_tokens: 3 },
          }),
        ],
        total_usage: { input_tokens: 3 },
      },
      {
        turn_type: 'agent',
        agent_id: 'bob',
        started_at: time(7),
        completed_at: time(7),
        messages: [
          message('response', 7, 'bob', {
            parts: [{ part_kind: 'text', content: 'Me too', timestamp: time(7) }],
            usage: { output_tokens: 4 },
            finish_reason: 'stop',
          }),
        ],
        total_usage: { output_tokens: 4 },
      },
      {
        turn_type: 'agent',
        agent_id: 'ada', // who made the calls
        started_at: time(8),
        completed_at: time(13),
        messages: [
          message('request', 8, 'ada', {
            parts: [returned(8, 'c2', 2, success), returned(9, 'c1', 1, success)],
          }),
          message('response', 10, 'ada', {
            parts: [
              {
                part_kind: 'thinking',
                content: 'hm',
                signature: 's',
                provider_name: 'p',
                thinking_id: 'th',
                timestamp: time(10),
              },
              { part_kind: 'text', content: 'One', timestamp: time(11) },
              {
                part_kind: 'thinking',
                content: 'more',
                provider_name: 'p',
                timestamp: time(12),
              },
            ],
          }),
          message('response', 13, 'ada', {
            parts: [{ part_kind: 'text', content: 'Two', timestamp: time(13) }],
          }),
        ],
      },
    ])
    expect(lost).toEqual([
      { pointer: '/actions/13', reason: 'not an action' },
      { pointer: '/actions/14', reason: 'not an action' },
    ])
    const reason = '1.0.0 marks no runs: grouped by agent'
    expect(inferred).toEqual([0, 2, 3, 4].map((turn) => ({ pointer: `/turns/${turn}`, reason })))
  })

  test('TP-51 every kind of content and attachment is kept, with the members that nobody knows', () => {
    const { value, inferred } = migrate(
      act('user_message', 1, {
        content: [
          { type: 'text', text: 'Look' },
          { type: 'text', text: 5 },
          7,
          'plain',
          {
            type: 'image',
            image_url: 'https://x.test/a.png',
            media_type: 'image/png',
            name: 'a.png',
            alt: 'A',
          },
          { type: 'audio', url: 'https://x.test/a.mp3', identifier: 'own' },
          { media_type: 'video/mp4', video_base64: 'AAAA', name: 'v', size_bytes: 3 },
          { url: 'https://x.test/b', media_type: 5 },
          { type: 'poll', data: 'BBBB', note: 1 },
          { data: 'CCCC', size_bytes: 1 },
          { type: 'poll', options: [1] },
        ],
      }),
      act('user_message', 2, {
        content: 5,
        attachments: [{ url: 'https://x.test/c', media_type: '' }],
      }),
      act('user_message', 3, { content: 'See', attachments: [{ type: 'video', data: 'AAAA' }] }),
      act('user_message', 4, { content: null, attachments: 'none' }),
    )
    const bytes = { kind: 'binary', media_type: 'application/octet-stream' }
    const contents = value.turns.map(
      (turn) => (turn as unknown as { parts: { content: unknown }[] }).parts[0]!.content,
    )
    expect(contents).toStrictEqual([
      [
        'Look',
        { type: 'text', text: 5, kind: 'v1:text' },
        7,
        'plain',
        {
          kind: 'image-url',
          url: 'https://x.test/a.png',
          identifier: '3f7cc1',
          media_type: 'image/png',
          vendor_metadata: { name: 'a.png' },
          alt: 'A',
        },
        { kind: 'audio-url', url: 'https://x.test/a.mp3', identifier: 'own' },
        {
          kind: 'binary',
          data: 'AAAA',
          media_type: 'video/mp4',
          identifier: '63c1dd',
          vendor_metadata: { name: 'v', size_bytes: 3 },
        },
        { kind: 'document-url', url: 'https://x.test/b', identifier: '817351' },
        { ...bytes, data: 'BBBB', identifier: '4a8d81', note: 1 },
        { ...bytes, data: 'CCCC', identifier: '90b485', vendor_metadata: { size_bytes: 1 } },
        { type: 'poll', options: [1], kind: 'v1:poll' },
      ],
      [{ kind: 'document-url', url: 'https://x.test/c', identifier: 'cd9383' }],
      ['See', { ...bytes, data: 'AAAA', identifier: '63c1dd' }],
      '',
    ])
    const made = {
      url: 'an identifier was made for a URL',
      data: 'an identifier was made for binary content',
    }
    expect(inferred).toEqual(
      [
        [0, made.url],
        [0, made.url],
        [0, made.data],
        [0, made.url],
        [0, made.data],
        [0, made.data],
        [1, made.url],
        [2, made.data],
      ].map(([turn, reason]) => ({ pointer: `/turns/${turn}`, reason })),
    )
  })

  test('TP-52 vendor_metadata of an attachment is kept, with name and size beside it', () => {
    const named = { name: 'a.png', size_bytes: 7, vendor_metadata: { detail: 'high' } }
    const { value } = migrate(
      act('user_message', 1, {
        content: [
          { data: 'AAAA', media_type: 'image/png', ...named },
          { type: 'image', image_url: 'https://x.test/a.png', ...named },
        ],
      }),
    )
    expect(value.turns[0]).toMatchObject({
      parts: [
        {
          content: [
            { kind: 'binary', data: 'AAAA', media_type: 'image/png', ...named },
            { kind: 'image-url', url: 'https://x.test/a.png', ...named },
          ],
        },
      ],
    })
  })

  test('TP-49 sequence numbers order the actions only if all have one, and equal ones keep their order', () => {
    const said = (content: string, sequence?: unknown) =>
      act('user_message', 1, { content, ...(sequence !== undefined && { sequence }) })
    const orderOf = (...actions: readonly unknown[]) => {
      const { value, inferred, lost } = migrate(...actions)
      const texts = value.turns.map(
        (turn) => (turn as unknown as { parts: { content: string }[] }).parts[0]!.content,
      )
      return [texts.join(''), inferred.map(({ pointer }) => pointer), lost.length]
    }
    expect(orderOf(said('a', 2), said('b', 1), said('c', 1), said('d', 10))).toEqual([
      'bcad',
      ['/turns'],
      0,
    ])
    expect(orderOf(said('a', 1), said('b', 1), said('c', 2))).toEqual(['abc', [], 0])
    expect(orderOf(said('a', 3), said('b', 2), said('c'))).toEqual(['abc', [], 0])
    expect(orderOf(said('a', 3), said('b', '2'), said('c', 1))).toEqual(['abc', [], 0])
    expect(orderOf(said('a', 3), 7, said('c', 1))).toEqual(['ac', [], 1])
    // The numbers themselves are nowhere in the thread: the place in a list is the order.
    const types = ['user_message', 'assistant_message', 'thinking', 'tool_call', 'tool_return', 'x']
    const { value } = migrate(
      ...types.map((type, index) => act(type, index, { agent_id: 'ada', sequence: index })),
    )
    expect(JSON.stringify(value.turns)).not.toMatch(/sequence|action_type/)
  })

  test('TP-51 events after the last run get a turn of its agent, at their own times', () => {
    const { value, lost } = migrate(
      act('assistant_message', 1, { agent_id: 'bob', content: 'x' }),
      act('user_message', 2, { content: 'bye' }),
      act('system.state_update', 3, { data: 1 }),
      act('system.agent_handoff', 4, { data: 2 }),
    )
    expect(value.turns.at(-1)).toMatchObject({
      turn_type: 'agent',
      agent_id: 'bob',
      started_at: time(3),
      completed_at: time(4),
      messages: [
        { event_type: 'state.update', event_data: 1 },
        { event_type: 'agent.handoff', event_data: 2 },
      ],
    })
    expect(lost).toEqual([])
    const alone = migrate(act('system.tool_revoke', 3, { data: 1 }))
    expect(alone.value.turns).toMatchObject([
      { agent_id: 'ada', messages: [{ event_type: 'tool.revoke' }] },
    ])
    expect(migrateThread({ ...head('1.0.0'), agents: {}, actions: [act('note', 1)] }).lost).toEqual(
      [{ pointer: '/actions', reason: 'events of a thread without agents have no turn' }],
    )
    expect(migrateThread({ ...head('1.0.0'), agents: null, actions: [] }).value.turns).toEqual([])
    expect(migrateThread(head('1.0.0')).value.turns).toEqual([])
  })
})

describe('drafts of turns', () => {
  const turnsOf = (...turns: readonly unknown[]) =>
    migrateThread({ ...head('0.0.4'), turns: turns as never })
  const agentTurn = (rest: object) => ({
    turn_type: 'agent',
    agent_id: 'ada',
    started_at: time(1),
    ...rest,
  })

  test('TP-51 a turn without an end ends with its interruption, its last message or its start', () => {
    const said = { message_type: 'response', agent_id: 'ada', parts: [] }
    const messages = [
      { ...said, timestamp: time(2) },
      { ...said, timestamp: time(3) },
    ]
    const ends = (rest: object) => {
      const { value, inferred } = turnsOf(agentTurn(rest))
      return [
        (value.turns[0] as { completed_at?: string }).completed_at,
        inferred.map(({ pointer }) => pointer.replace('/turns/0/', '')),
      ]
    }
    expect(ends({ messages, completed_at: time(9) })).toEqual([time(9), []])
    expect(ends({ messages })).toEqual([time(3), ['completed_at']])
    expect(ends({ messages, interruption: { interrupted_at: time(8) } })).toEqual([
      time(8),
      ['completed_at'],
    ])
    expect(ends({ messages, interruption: {} })).toEqual([time(3), ['completed_at']])
    expect(ends({ messages, interruption: 'yes' })).toEqual([time(3), ['completed_at']])
    expect(ends({ messages: [{ ...said, timestamp: 5 }] })).toEqual([time(1), ['completed_at']])
    expect(ends({ messages: [null] })).toEqual([time(1), ['completed_at']])
    expect(ends({ messages: [] })).toEqual([time(1), ['completed_at']])
    expect(ends({})).toEqual([time(1), ['completed_at', 'messages']])
  })

  test('TP-51 what is left out is added and named, in user turns too; the rest stays the same object', () => {
    const user = {
      turn_type: 'user',
      submitted_at: time(1),
      parts: [
        { part_kind: 'tool-return', tool_name: 'w', content: 1 },
        { part_kind: 'tool-call', tool_name: 'v' },
        'odd',
      ],
    }
    const whole = agentTurn({
      completed_at: time(3),
      messages: [
        { message_type: 'request', timestamp: time(2), agent_id: 'bob', parts: 'none' },
        { message_type: 'system', timestamp: time(2), event_type: 'x', event_data: 1 },
        7,
      ],
    })
    const bare = agentTurn({
      completed_at: time(3),
      messages: [{ message_type: 'response', timestamp: time(2), parts: [] }],
    })
    const other = { turn_type: 'pause' }
    const { value, inferred } = turnsOf(user, whole, bare, other, 5)
    expect(value.turns[0]).toStrictEqual({
      ...user,
      parts: [
        {
          part_kind: 'tool-return',
          tool_name: 'w',
          content: 1,
          tool_call_id: 'migrated-1',
          status: 'success',
        },
        { part_kind: 'tool-call', tool_name: 'v', tool_call_id: 'migrated-2', args: null },
        'odd',
      ],
    })
    expect(value.turns[1]).toEqual(whole)
    expect((value.turns[2] as unknown as { messages: object[] }).messages[0]).toMatchObject({
      agent_id: 'ada',
    })
    expect(value.turns[3]).toBe(other)
    expect(value.turns[4]).toBe(5)
    expect(inferred).toEqual(
      [
        '/turns/0/parts/0/tool_call_id',
        '/turns/0/parts/0/status',
        '/turns/0/parts/1/tool_call_id',
        '/turns/0/parts/1/args',
        '/turns/2/messages/0/agent_id',
      ].map((pointer) => ({ pointer, reason: 'the draft allows it to be absent' })),
    )
    expect(migrateThread(head('0.0.3')).value.turns).toEqual([])
  })

  test.each([
    ['data-tp-agent_handoff', 'agent.handoff'],
    ['data-tp-thread_spawn', 'thread.spawn'],
    ['data-tp-thread_merge', 'thread.merge'],
    ['data-tp-thread_end', 'thread.end'],
    ['data-tp-error', 'error'],
    ['data-tp-other', 'data-tp-other'],
  ])('TP-51 the event %s is %s now, with all its members', (event_type, name) => {
    const event = {
      message_type: 'system',
      timestamp: time(2),
      event_type,
      event_data: 1,
      extra: 2,
    }
    const { value } = turnsOf(agentTurn({ completed_at: time(3), messages: [event] }))
    expect((value.turns[0] as unknown as { messages: object[] }).messages).toEqual([
      { ...event, event_type: name },
    ])
  })

  test('TP-51 later versions of 2 are read as they are; a document without a version is an error', () => {
    const later = { ...fullThread(), version: '2.13.4' }
    expect(migrateThread(later)).toEqual({ value: later, from: '2.13.4', lost: [], inferred: [] })
    for (const version of ['2.0', '2.0.0-x', '12.0.0', '2.0.0.0'])
      expect(() => migrateThread({ ...later, version })).toThrow(UnsupportedVersionError)
    for (const document of [null, [], 'null', '{"version":2}', {}])
      expect(() => migrateThread(document)).toThrow(
        expect.objectContaining({ code: 'INVALID_THREAD' }),
      )
    expect(() => migrateThread('[[[[1]]]]', { maxDepth: 2 })).toThrow(
      expect.not.objectContaining({ code: 'INVALID_THREAD' }) as Error,
    )
  })
})
