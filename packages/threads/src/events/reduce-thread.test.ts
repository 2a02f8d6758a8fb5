import { deepFreeze } from '@skein/base'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { opening, response } from '../../test/sample-events.ts'
import { isEphemeralEvent, isThreadEvent, type ThreadEvent } from './event.ts'
import { threadFromEvents, threadFromState } from './event-to-thread.ts'
import { ThreadFold, foldThread, reduceThread } from './reduce-thread.ts'
import { emptyFoldedThread, type AgentTurnState } from './folded-thread.ts'
import { validateThread } from '../document/validate.ts'

const events = [...opening, ...response]
const at = '2026-05-01T14:00:00Z'
const deep = process.env['SKEIN_DEEP'] ? 500 : 40

describe('reduceThread', () => {
  const state = foldThread(events)
  const [user, guide, clerk] = state.turns as [unknown, AgentTurnState, AgentTurnState]

  test('folds a conversation into turns, calls and facts', () => {
    expect(state).toMatchObject({
      threadId: 'thread-1',
      title: 'Weather',
      status: 'idle',
      statusText: 'done',
      usage: { input_tokens: 30, output_tokens: 12, cost: '0.03' },
      eventCount: events.length,
      unknownEvents: 0,
    })
    expect(user).toMatchObject({ kind: 'user', turnId: 'u1', userId: 'kim' })
    expect(guide).toMatchObject({ agentId: 'guide/a', outcome: 'completed' })
    expect(guide.draft).toBeUndefined()
    expect(clerk).toMatchObject({ agentId: 'clerk/a', outcome: 'completed' })
    expect(Object.keys(state.agents)).toEqual(['guide/a', 'clerk/a'])
    expect(state.files['/report.md']).toMatchObject({ sizeBytes: 12 })
    expect(state.evidence).toHaveLength(1)
    expect(state.gates).toHaveLength(1)
    expect(state.errors).toHaveLength(1)
  })

  test('keeps the endings of calls apart', () => {
    expect(guide.calls.map(({ toolCallId, status }) => [toolCallId, status])).toEqual([
      ['c1', 'success'],
      ['c2', 'retry'],
      ['c3', 'denied'],
    ])
    expect(guide.calls[0]).not.toHaveProperty('progress')
    expect(state.interrupts['i1']).toMatchObject({ answer: { type: 'deny' }, answeredBy: 'kim' })
  })

  test('a child that says it is terminated stays what it is', () => {
    const running = foldThread(
      events.slice(
        0,
        events.findIndex((event) => event.type === 'subagent_ended'),
      ),
    )
    expect(running.subagents['child-1']).toMatchObject({
      status: 'running',
      statusText: 'terminated',
    })
    expect(state.subagents['child-1']).toMatchObject({ status: 'completed', result: 'fine' })
  })

  test('stores UPP messages verbatim', () => {
    const stored = guide.items.flatMap((item) => (item.kind === 'message' ? [item.message] : []))
    const sent = response.flatMap((event) =>
      event.type === 'message_added' ? [event.message] : [],
    )
    expect(stored).toEqual(sent.filter((message) => ['m2', 'm3'].includes(message.id)))
  })

  test('one by one, in batches and at once give the same state', () => {
    const single = events.reduce(reduceThread, emptyFoldedThread)
    expect(single).toEqual(state)
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: events.length }), { maxLength: 6 }),
        (cuts) => {
          const fold = new ThreadFold()
          events.forEach((event, index) => {
            fold.push(event)
            if (cuts.includes(index)) void fold.state
          })
          expect(fold.state).toEqual(state)
        },
      ),
      { numRuns: deep, seed: 7 },
    )
  })

  test('a state that was handed out never changes', () => {
    let frozen = emptyFoldedThread
    for (const event of events) {
      const copy = JSON.stringify(frozen)
      const next = reduceThread(deepFreeze(frozen), event)
      expect(JSON.stringify(frozen)).toBe(copy)
      frozen = next
    }
  })

  test('is plain JSON at every step, and can go on from there', () => {
    const half = JSON.parse(JSON.stringify(foldThread(events.slice(0, 20)))) as typeof state
    expect(foldThread(events.slice(20), half)).toEqual(JSON.parse(JSON.stringify(state)))
  })

  test('what was only streamed leaves no trace in the end', () => {
    const durable = foldThread(events.filter((event) => !isEphemeralEvent(event)))
    expect({ ...durable, eventCount: 0 }).toEqual({ ...state, eventCount: 0 })
  })

  test('shows a draft while the model speaks', () => {
    const upTo = events.findIndex(
      (event) => event.type === 'message_added' && event.message.id === 'm2',
    )
    const live = foldThread(events.slice(0, upTo)).turns.at(-1) as AgentTurnState
    expect(live.draft?.blocks).toEqual([
      { type: 'reasoning', id: 'r', text: 'Thinking about Let me look.' },
      { type: 'text', id: 'b', text: 'Let me look.' },
      { type: 'tool_call', id: 'c1', toolName: 'weather', text: '{"city":"Oslo"}' },
    ])
  })

  test('100,000 deltas fold in linear time', () => {
    const deltas = (count: number): ThreadEvent[] =>
      Array.from({ length: count }, () => ({
        type: 'text_delta',
        at,
        turnId: 't',
        blockId: 'b',
        text: 'word ',
      }))
    const time = (count: number) => {
      const list = deltas(count)
      // Time of this process, because other processes may have the machine meanwhile.
      const start = process.cpuUsage()
      const folded = foldThread([{ type: 'turn_start', at, turnId: 't', agentId: 'a' }, ...list])
      expect((folded.turns[0] as AgentTurnState).draft?.blocks[0]?.text).toHaveLength(count * 5)
      const { user, system } = process.cpuUsage(start)
      return (user + system) / 1000
    }
    time(10_000)
    // Ten times the work may take three times its fair share on a busy machine; a square would be a hundred.
    expect(time(100_000)).toBeLessThan(Math.max(30 * time(10_000), 400))
  })

  test('events of unknown type are counted, kept in their place and otherwise ignored', () => {
    const future = { type: 'hologram_shown', at, turnId: 't2', size: 3 }
    expect(isThreadEvent(future)).toBe(false)
    const next = reduceThread(state, future)
    expect(next.unknownEvents).toBe(1)
    expect(threadFromState(next).value.turns.at(-1)).toMatchObject({
      messages: expect.arrayContaining([
        expect.objectContaining({ event_type: 'hologram.shown', event_data: { size: 3 } }),
      ]) as unknown,
    })
  })

  test('ids such as __proto__ and constructor are plain data', () => {
    const odd = foldThread([
      { type: 'thread_created', at, threadId: '__proto__', metadata: { constructor: 1 } },
      {
        type: 'agent_registered',
        at,
        agent: { agent_id: '__proto__', agent_name: 'x', created_at: at },
      },
      { type: 'turn_start', at, turnId: '__proto__', agentId: '__proto__' },
      {
        type: 'tool_execution_end',
        at,
        turnId: '__proto__',
        toolCallId: 'constructor',
        toolName: 'x',
        outcome: 'success',
        result: 1,
      },
    ])
    expect(Object.keys(odd.agents)).toEqual(['__proto__'])
    expect(odd.turns).toHaveLength(1)
    expect(({} as { agent_id?: string }).agent_id).toBeUndefined()
  })

  test('a reused call id means the latest call', () => {
    const call = { toolCallId: 'c', toolName: 'f', arguments: {} }
    const asks = (id: string): ThreadEvent => ({
      type: 'message_added',
      at,
      turnId: 't',
      message: { id, type: 'assistant', content: [], toolCalls: [call], timestamp: at },
    })
    const ends = (result: string): ThreadEvent => ({
      type: 'tool_execution_end',
      at,
      turnId: 't',
      toolCallId: 'c',
      toolName: 'f',
      outcome: 'success',
      result,
    })
    const folded = foldThread([asks('1'), ends('one'), ends('again'), asks('2'), ends('two')])
    expect((folded.turns[0] as AgentTurnState).calls.map(({ result }) => result)).toEqual([
      'one',
      'two',
    ])
  })

  test('hidden calls, edited and removed messages', () => {
    const edited = foldThread([
      ...events,
      { type: 'tool_call_hidden', at, toolCallId: 'c1' },
      { type: 'message_removed', at, messageId: 'm5' },
      {
        type: 'message_updated',
        at,
        messageId: 'm1',
        message: {
          id: 'm1',
          type: 'user',
          content: [{ type: 'text', text: 'Edited' }],
          timestamp: at,
        },
      },
    ])
    expect((edited.turns[1] as AgentTurnState).calls[0]?.isHidden).toBe(true)
    const { turns } = threadFromState(edited).value
    expect(JSON.stringify(turns[2])).not.toContain('8 °C')
    expect(turns[0]).toMatchObject({ parts: [{ content: 'Edited' }] })
  })
})

describe('the document of a live thread', () => {
  test('stores each result once and names every event', () => {
    const { value, lost } = threadFromEvents(events)
    expect(lost).toEqual([])
    expect(validateThread(value).issues.filter((issue) => issue.severity !== 'info')).toEqual([])
    const text = JSON.stringify(value)
    expect(text.match(/No such city/g)).toHaveLength(1)
    const turn = value.turns[1] as unknown as { messages: { event_type?: string }[] }
    expect(turn.messages.flatMap(({ event_type }) => event_type ?? [])).toEqual([
      'gate.decided',
      'evidence.added',
      'file.written',
      'tool.approval.requested',
      'tool.approval.responded',
      'source.url',
      'subagent.created',
      'subagent.updated',
      'subagent.ended',
      'app.note',
      'app.note',
      'agent.handoff',
    ])
  })

  test('bytes of a message arrive in the document as their base64 text', () => {
    const sound = { type: 'audio', data: { $bytes: 'AAEC' }, mimeType: 'audio/wav' } as const
    const said = { id: 'm', type: 'user', content: [sound], timestamp: at } as const
    const { value } = threadFromEvents([
      ...opening,
      { type: 'message_added', at, turnId: 'u', message: said },
    ])
    expect(value.turns.at(-1)).toMatchObject({
      parts: [{ content: [{ kind: 'binary', data: 'AAEC', media_type: 'audio/wav' }] }],
    })
  })

  test('an approval token never reaches the document', () => {
    const answered = events.map((event): ThreadEvent =>
      event.type === 'interrupt_answered'
        ? { ...event, answer: { type: 'approve', token: 'canary-token' } }
        : event,
    )
    expect(JSON.stringify(threadFromEvents(answered).value)).not.toContain('canary-token')
  })

  test('a turn that broke off keeps its words and says so; half a call is reported', () => {
    const broken: ThreadEvent[] = [
      ...opening,
      { type: 'turn_start', at, turnId: 't', agentId: 'guide/a' },
      { type: 'text_delta', at, turnId: 't', blockId: 'b', text: 'I was sa' },
      {
        type: 'tool_call_delta',
        at,
        turnId: 't',
        toolCallId: 'c',
        toolName: 'f',
        argumentsText: '{"a',
      },
    ]
    const running = threadFromEvents(broken)
    expect(running.value.turns).toHaveLength(1)
    expect(running.lost).toEqual([{ pointer: '/turns/1', reason: 'the turn is still running' }])
    const { value, lost } = threadFromEvents([
      ...broken,
      { type: 'turn_end', at, turnId: 't', outcome: 'interrupted', reason: 'timeout' },
    ])
    expect(value.turns[1]).toMatchObject({
      completion_status: 'interrupted',
      interruption: { reason: 'timeout' },
      messages: [{ parts: [{ content: 'I was sa' }] }],
    })
    expect(lost).toHaveLength(1)
  })
})

describe('TP-54 every field of the events is in the document, once', () => {
  const t = (second: number) => `2026-05-01T14:00:${String(second).padStart(2, '0')}Z`
  const said = (id: string, rest: object) => ({
    id,
    type: 'assistant',
    content: [],
    timestamp: t(0),
    ...rest,
  })
  const list = [
    {
      type: 'thread_created',
      at: t(0),
      threadId: 'th',
      title: 'T',
      metadata: { a: 1 },
      parentThreadId: 'p',
    },
    {
      type: 'agent_registered',
      at: t(1),
      agent: { agent_id: 'known', agent_name: 'Known', created_at: t(0) },
    },
    {
      type: 'message_added',
      at: t(2),
      turnId: 'u1',
      userId: 'kim',
      isSilent: true,
      message: {
        id: 'm1',
        type: 'user',
        timestamp: t(2),
        content: [
          { type: 'text', text: 'Hi' },
          { type: 'native', vendor: 'v', data: 1 },
        ],
      },
    },
    { type: 'custom_event', at: t(3), name: 'app.note', data: 1, turnId: 'u1' },
    { type: 'turn_start', at: t(4), turnId: 't1', agentId: 'guide', continues: 't0' },
    {
      type: 'message_added',
      at: t(5),
      turnId: 't1',
      agentId: 'other',
      modelName: 'm',
      providerName: 'p',
      providerResponseId: 'r1',
      finishReason: 'tool_call',
      usage: { input_tokens: 3, output_tokens: 1 },
      message: said('m2', {
        metadata: { v: { x: 1 } },
        content: [
          { type: 'text', text: 'Look', metadata: { v: { y: 1 } } },
          { type: 'reasoning', text: 'hm' },
          {
            type: 'image',
            source: { type: 'url', url: 'https://x.test/a.png' },
            mimeType: 'image/png',
          },
          {
            type: 'document',
            source: { type: 'text', data: 'abc' },
            mimeType: 'text/plain',
            title: 'Doc',
          },
          {
            type: 'document',
            source: { type: 'url', url: 'https://x.test/a.pdf' },
            mimeType: 'application/pdf',
          },
          { type: 'image', source: { type: 'base64', data: 'AAAA' }, mimeType: 'image/gif' },
          {
            type: 'image',
            source: { type: 'bytes', data: { $bytes: 'BBBB' } },
            mimeType: 'image/gif',
          },
          { type: 'video', data: { $bytes: 'CCCC' }, mimeType: 'video/mp4' },
          { type: 'native', vendor: 'v', data: { z: 1 } },
          { type: 'hologram', size: 3 },
        ],
        toolCalls: [
          {
            toolCallId: 'c1',
            toolName: 'f',
            arguments: { a: 1 },
            after: ['c0'],
            metadata: { v: { k: 1 } },
          },
          {
            toolCallId: 'c2',
            toolName: 'g',
            arguments: {},
            invalidArguments: { text: '{"a', message: 'cut' },
          },
          { toolCallId: 'c3', toolName: 'h', arguments: {} },
        ],
      }),
    },
    { type: 'tool_execution_start', at: t(6), turnId: 't1', toolCallId: 'c1', toolName: 'f' },
    {
      type: 'tool_execution_end',
      at: t(7),
      turnId: 't1',
      toolCallId: 'c1',
      toolName: 'f',
      outcome: 'success',
      result: { ok: true },
      durationMs: 5,
    },
    {
      type: 'message_added',
      at: t(8),
      turnId: 't1',
      outcomes: { c3: 'retry' },
      message: {
        id: 'm3',
        type: 'tool_result',
        timestamp: t(8),
        results: [
          { toolCallId: 'c1', result: 'late' },
          { toolCallId: 'c2', result: 'no', isError: true },
          { toolCallId: 'c3', result: { x: 1 } },
        ],
      },
    },
    {
      type: 'file_written',
      at: t(9),
      turnId: 't1',
      path: '/a',
      mediaType: 'text/plain',
      sizeBytes: 1,
    },
    {
      type: 'message_added',
      at: t(10),
      turnId: 't1',
      isSilent: true,
      finishReason: 'novel',
      usage: { input_tokens: 1 },
      message: said('m4', { content: [{ type: 'text', text: 'Done' }] }),
    },
    {
      type: 'tool_execution_end',
      at: t(11),
      turnId: 't1',
      toolCallId: 'c9',
      toolName: 'q',
      outcome: 'unknown',
      result: undefined,
    },
    { type: 'turn_end', at: t(12), turnId: 't1', outcome: 'failed' },
    { type: 'turn_start', at: t(13), turnId: 't2', agentId: 'known' },
    {
      type: 'message_added',
      at: t(13),
      turnId: 't2',
      message: {
        id: 'm5',
        type: 'user',
        timestamp: t(13),
        content: [
          { type: 'text', text: 'a' },
          {
            type: 'audio',
            data: { $bytes: 'DDDD' },
            mimeType: 'audio/wav',
            metadata: { v: { q: 1 } },
          },
          { type: 'reasoning', text: 'x' },
          { type: 'hologram', size: 3 },
        ],
      },
    },
    { type: 'turn_end', at: t(14), turnId: 't2', outcome: 'interrupted' },
    { type: 'turn_start', at: t(15), turnId: 't3', agentId: 'known' },
    { type: 'reasoning_delta', at: t(16), turnId: 't3', blockId: 'r', text: 'hm' },
    { type: 'text_delta', at: t(16), turnId: 't3', blockId: 'b', text: 'I ' },
    { type: 'text_delta', at: t(16), turnId: 't3', blockId: 'b', text: 'was' },
    {
      type: 'tool_call_delta',
      at: t(17),
      turnId: 't3',
      toolCallId: 'c5',
      toolName: 'f',
      argumentsText: '{',
    },
    {
      type: 'message_added',
      at: t(18),
      turnId: 'u2',
      message: {
        id: 'm6',
        type: 'user',
        timestamp: t(18),
        content: [{ type: 'text', text: 'Bye' }],
      },
    },
    { type: 'custom_event', at: t(19), name: 'app.late', data: 1, turnId: 'u2' },
  ] as unknown as ThreadEvent[]

  const file = (content: object, rest: object = {}) => ({ part_kind: 'file', content, ...rest })
  const bytes = (data: string, media_type: string, identifier: string) => ({
    kind: 'binary',
    data,
    media_type,
    identifier,
  })
  const agent = (agent_id: string, agent_name = agent_id) => ({
    agent_id,
    agent_name,
    created_at: t(0),
  })
  const losses = [
    { pointer: '/turns/0', reason: 'a user turn has no vendor blocks' },
    { pointer: '/turns/2', reason: 'a user turn has no thinking' },
    { pointer: '/turns/2', reason: 'a block of a type that is not known here' },
  ]
  const late = {
    pointer: '/turns',
    reason: 'app.late came after the last agent turn and has no place yet',
  }

  test('TP-54 fields of turns, messages, parts and results', () => {
    const { value, lost } = threadFromEvents(list, { includeRunning: true })
    expect(JSON.parse(JSON.stringify(value))).toEqual({
      version: '2.0.0',
      thread_id: 'th',
      created_at: t(0),
      updated_at: t(19),
      title: 'T',
      metadata: { a: 1 },
      parent_thread_id: 'p',
      agents: { known: agent('known', 'Known'), guide: agent('guide'), other: agent('other') },
      turns: [
        {
          turn_type: 'user',
          turn_id: 'u1',
          submitted_at: t(2),
          user_id: 'kim',
          is_silent: true,
          parts: [{ part_kind: 'user-prompt', content: 'Hi' }],
        },
        {
          turn_type: 'agent',
          turn_id: 't1',
          agent_id: 'guide',
          started_at: t(4),
          completed_at: t(12),
          continues: 't0',
          completion_status: 'interrupted',
          interruption: { reason: 'error', interrupted_at: t(12) },
          messages: [
            { message_type: 'system', timestamp: t(3), event_type: 'app.note', event_data: 1 },
            {
              message_type: 'response',
              timestamp: t(5),
              agent_id: 'other',
              message_id: 'm2',
              upp_metadata: { v: { x: 1 } },
              parts: [
                { part_kind: 'text', content: 'Look', upp_metadata: { v: { y: 1 } } },
                { part_kind: 'thinking', content: 'hm' },
                file({
                  kind: 'image-url',
                  url: 'https://x.test/a.png',
                  media_type: 'image/png',
                  identifier: '3f7cc1',
                }),
                file(bytes('YWJj', 'text/plain', '35d956'), { title: 'Doc' }),
                file({
                  kind: 'document-url',
                  url: 'https://x.test/a.pdf',
                  media_type: 'application/pdf',
                  identifier: 'd7de71',
                }),
                file(bytes('AAAA', 'image/gif', '63c1dd')),
                file(bytes('BBBB', 'image/gif', '4a8d81')),
                file(bytes('CCCC', 'video/mp4', '90b485')),
                { part_kind: 'native', vendor: 'v', data: { z: 1 } },
                { part_kind: 'hologram', size: 3 },
                {
                  part_kind: 'tool-call',
                  tool_name: 'f',
                  tool_call_id: 'c1',
                  args: { a: 1 },
                  after: ['c0'],
                  upp_metadata: { v: { k: 1 } },
                },
                { part_kind: 'tool-call', tool_name: 'g', tool_call_id: 'c2', args: '{"a' },
                { part_kind: 'tool-call', tool_name: 'h', tool_call_id: 'c3', args: {} },
              ],
              model_name: 'm',
              provider_name: 'p',
              provider_response_id: 'r1',
              usage: { input_tokens: 3, output_tokens: 1 },
              finish_reason: 'tool_call',
            },
            {
              message_type: 'request',
              timestamp: t(8),
              agent_id: 'guide',
              parts: [
                {
                  part_kind: 'tool-return',
                  tool_name: 'f',
                  tool_call_id: 'c1',
                  status: 'success',
                  content: { ok: true },
                  timestamp: t(7),
                },
                {
                  part_kind: 'tool-return',
                  tool_name: 'g',
                  tool_call_id: 'c2',
                  status: 'error',
                  outcome: 'failed',
                  content: 'no',
                  timestamp: t(8),
                },
                {
                  part_kind: 'retry-prompt',
                  content: '{"x":1}',
                  tool_name: 'h',
                  tool_call_id: 'c3',
                  timestamp: t(8),
                },
              ],
            },
            {
              message_type: 'system',
              timestamp: t(9),
              event_type: 'file.written',
              event_data: { path: '/a', mediaType: 'text/plain', sizeBytes: 1 },
            },
            {
              message_type: 'response',
              timestamp: t(10),
              agent_id: 'guide',
              message_id: 'm4',
              is_silent: true,
              parts: [{ part_kind: 'text', content: 'Done' }],
              usage: { input_tokens: 1 },
              provider_finish_reason: 'novel',
            },
            {
              message_type: 'request',
              timestamp: t(11),
              agent_id: 'guide',
              parts: [
                {
                  part_kind: 'tool-return',
                  tool_name: 'q',
                  tool_call_id: 'c9',
                  status: 'error',
                  outcome: 'interrupted',
                  content: null,
                  timestamp: t(11),
                },
              ],
            },
          ],
          total_usage: { input_tokens: 4, output_tokens: 1 },
        },
        {
          turn_type: 'agent',
          turn_id: 't2',
          agent_id: 'known',
          started_at: t(13),
          completed_at: t(14),
          completion_status: 'interrupted',
          interruption: { reason: 'user_cancelled', interrupted_at: t(14) },
          messages: [
            {
              message_type: 'request',
              timestamp: t(13),
              agent_id: 'known',
              message_id: 'm5',
              parts: [
                {
                  part_kind: 'user-prompt',
                  content: [
                    'a',
                    { ...bytes('DDDD', 'audio/wav', '3989c4'), upp_metadata: { v: { q: 1 } } },
                  ],
                },
              ],
            },
          ],
        },
        {
          turn_type: 'agent',
          turn_id: 't3',
          agent_id: 'known',
          started_at: t(15),
          completed_at: t(19),
          completion_status: 'interrupted',
          interruption: { reason: 'running', interrupted_at: t(19) },
          messages: [
            {
              message_type: 'response',
              timestamp: t(19),
              agent_id: 'known',
              parts: [
                { part_kind: 'thinking', content: 'hm' },
                { part_kind: 'text', content: 'I was' },
              ],
            },
          ],
        },
        {
          turn_type: 'user',
          turn_id: 'u2',
          submitted_at: t(18),
          parts: [{ part_kind: 'user-prompt', content: 'Bye' }],
        },
      ],
    })
    expect(lost).toEqual([
      ...losses,
      { pointer: '/turns/3', reason: 'the arguments of call c5 never became complete' },
      late,
    ])
    // Every agent that the document names is in its registry.
    const errors = validateThread(value).issues.filter(({ severity }) => severity === 'error')
    expect(errors.map(({ code }) => code)).toEqual(['return_without_call'])
  })

  test('TP-14 each event of a turn is a system message with its own name, data and agents', () => {
    const happened = (...items: readonly object[]) => {
      const { value } = threadFromEvents([
        { type: 'thread_created', at: t(0), threadId: 'th' },
        { type: 'turn_start', at: t(1), turnId: 't', agentId: 'a' },
        ...items.map((item) => ({ at: t(2), turnId: 't', ...item })),
        { type: 'turn_end', at: t(3), turnId: 't', outcome: 'completed' },
      ] as ThreadEvent[])
      const [turn] = JSON.parse(JSON.stringify(value.turns)) as [{ messages: unknown[] }]
      return turn.messages
    }
    const event = (event_type: string, event_data: unknown, rest: object = {}) => ({
      message_type: 'system',
      timestamp: t(2),
      event_type,
      event_data,
      ...rest,
    })
    expect(
      happened(
        { type: 'agent_handoff', fromAgentId: 'a', toAgentId: 'b', reason: 'r' },
        { type: 'custom_event', name: 'x_y_z' },
        { type: 'custom_event', name: 'app.note', data: null, id: 'e' },
        { type: 'custom_event', name: '', data: 0 },
        { type: 'hologram_was_shown', size: 1 },
        { type: 'file_written', path: 'p', mediaType: 'x/y', sizeBytes: 1 },
        { type: 'source_added', sourceId: 's', url: 'u', title: 'T' },
        { type: 'source_added', sourceId: 's', mediaType: 'x/y', title: 'T', filename: 'f' },
      ),
    ).toEqual([
      event(
        'agent.handoff',
        { from: 'a', to: 'b', reason: 'r' },
        { source_agent: 'a', target_agents: ['b'] },
      ),
      event('x_y_z', null),
      event('app.note', null, { event_id: 'e' }),
      event('', 0),
      event('hologram.was_shown', { size: 1 }),
      event('file.written', { path: 'p', mediaType: 'x/y', sizeBytes: 1 }),
      event('source.url', { source_id: 's', url: 'u', title: 'T' }),
      event('source.document', { source_id: 's', media_type: 'x/y', title: 'T', filename: 'f' }),
    ])
  })

  test.each([
    ['completed', undefined, undefined],
    ['parked', undefined, undefined],
    ['failed', 'error', undefined],
    ['interrupted', 'user_cancelled', undefined],
    ['interrupted', 'timeout', 'timeout'],
  ] as const)('TP-32 a turn that is %s is interrupted by %s', (outcome, shown, reason) => {
    const { value } = threadFromEvents([
      { type: 'turn_start', at: t(1), turnId: 't', agentId: 'a' },
      { type: 'turn_end', at: t(3), turnId: 't', outcome, ...(reason && { reason }) },
    ])
    expect(JSON.parse(JSON.stringify(value.turns))).toEqual([
      {
        turn_type: 'agent',
        turn_id: 't',
        agent_id: 'a',
        started_at: t(1),
        completed_at: t(3),
        messages: [],
        ...(shown && {
          completion_status: 'interrupted',
          interruption: { reason: shown, interrupted_at: t(3) },
        }),
      },
    ])
  })

  test('TP-09 a message that was removed is not in the document, whoever wrote it', () => {
    const user = (id: string, text: string) => ({
      id,
      type: 'user',
      timestamp: t(1),
      content: [{ type: 'text', text }],
    })
    const turn = { at: t(1), turnId: 'u' }
    const { value } = threadFromEvents([
      { type: 'thread_created', at: t(0), threadId: 'th' },
      { type: 'message_added', ...turn, message: user('m1', 'no'), userId: 'kim' },
      { type: 'message_added', ...turn, message: user('m2', 'yes') },
      { type: 'turn_start', at: t(2), turnId: 'a', agentId: 'a' },
      { type: 'message_added', at: t(2), turnId: 'a', message: said('m3', {}) },
      { type: 'message_added', at: t(3), turnId: 'a', message: said('m4', {}) },
      { type: 'turn_end', at: t(4), turnId: 'a', outcome: 'completed' },
      { type: 'message_removed', at: t(5), messageId: 'm1' },
      { type: 'message_removed', at: t(5), messageId: 'm3' },
    ] as never as ThreadEvent[])
    expect(value.turns).toMatchObject([
      { user_id: 'kim', parts: [{ part_kind: 'user-prompt', content: 'yes' }] },
      { messages: [{ message_id: 'm4' }] },
    ])
  })

  test.each([
    ['text', 'text'],
    [[{ type: 'missing', loc: ['a'], msg: 'm' }], [{ type: 'missing', loc: ['a'], msg: 'm' }]],
    [{ why: 1 }, '{"why":1}'],
    [undefined, 'null'],
  ])('TP-21 a retry with %o is a retry prompt', (result, content) => {
    const { value } = threadFromEvents([
      { type: 'thread_created', at: t(0), threadId: 'th' },
      { type: 'turn_start', at: t(1), turnId: 't', agentId: 'a' },
      {
        type: 'tool_execution_end',
        at: t(2),
        turnId: 't',
        toolCallId: 'c',
        toolName: 'f',
        outcome: 'retry',
        result,
      },
      { type: 'turn_end', at: t(3), turnId: 't', outcome: 'completed' },
    ])
    expect(value.turns[0]).toMatchObject({
      messages: [
        {
          message_type: 'request',
          parts: [{ part_kind: 'retry-prompt', tool_name: 'f', tool_call_id: 'c', content }],
        },
      ],
    })
  })

  test('TP-44 what has no place in the document is named', () => {
    const { value, lost } = threadFromEvents(list)
    expect(value.turns).toHaveLength(4)
    expect(lost).toEqual([
      ...losses,
      { pointer: '/turns/3', reason: 'the turn is still running' },
      late,
    ])
    const bare = threadFromEvents([{ type: 'thread_created', at: t(0), threadId: 'th' }])
    expect(JSON.parse(JSON.stringify(bare.value))).toEqual({
      version: '2.0.0',
      thread_id: 'th',
      created_at: t(0),
      updated_at: t(0),
      agents: {},
      turns: [],
    })
  })

  test('TP-34 the live state of each call, its times and its result', () => {
    const state = foldThread(list)
    expect((state.turns[1] as AgentTurnState).calls).toEqual([
      {
        toolCallId: 'c1',
        toolName: 'f',
        arguments: { a: 1 },
        status: 'success',
        startedAt: t(6),
        endedAt: t(7),
        result: { ok: true },
        durationMs: 5,
      },
      {
        toolCallId: 'c2',
        toolName: 'g',
        arguments: {},
        status: 'failed',
        endedAt: t(8),
        result: 'no',
      },
      {
        toolCallId: 'c3',
        toolName: 'h',
        arguments: {},
        status: 'retry',
        endedAt: t(8),
        result: { x: 1 },
      },
    ])
    expect(state.usage).toEqual({ input_tokens: 4, output_tokens: 1 })
  })
})

describe('TP-33 a call while it waits and runs', () => {
  const base = [
    { type: 'turn_start', at, turnId: 't', agentId: 'a' },
    { type: 'tool_execution_start', at, turnId: 't', toolCallId: 'q', toolName: 'f', arguments: 1 },
  ] as const
  const callOf = (...more: readonly object[]) => {
    const state = foldThread([...base, ...(more as ThreadEvent[])])
    return { state, call: (state.turns[0] as AgentTurnState).calls[0]! }
  }
  const opened = {
    type: 'interrupt_opened',
    at: '2026-05-01T14:00:05Z',
    turnId: 't',
    interrupt: { id: 'i', toolCallId: 'q', kind: 'approval' },
  }
  const end = {
    type: 'tool_execution_end',
    at,
    turnId: 't',
    toolCallId: 'q',
    toolName: 'f',
    outcome: 'success',
    result: 1,
  }
  const answered = (type: string, rest: object = {}) => ({
    type: 'interrupt_answered',
    at,
    interruptId: 'i',
    answer: { type },
    ...rest,
  })

  test('TP-33 a call that no message has is added when it starts', () => {
    expect(callOf().call).toEqual({
      toolCallId: 'q',
      toolName: 'f',
      arguments: 1,
      status: 'running',
      startedAt: at,
    })
    const progress = {
      type: 'tool_execution_progress',
      at,
      turnId: 't',
      toolCallId: 'q',
      output: 5,
    }
    expect(callOf(progress).call.progress).toBe(5)
    expect(callOf(end, progress).call).not.toHaveProperty('progress')
  })

  test('TP-33 it waits until the first answer, which is the one that counts', () => {
    expect(callOf(opened).call).toMatchObject({ status: 'waiting', interruptId: 'i' })
    expect(callOf(opened).state.interrupts['i']).toEqual({
      id: 'i',
      toolCallId: 'q',
      kind: 'approval',
      turnId: 't',
      openedAt: '2026-05-01T14:00:05Z',
    })
    expect(callOf(opened, answered('approve')).call.status).toBe('requested')
    expect(callOf(opened, answered('deny')).call.status).toBe('denied')
    const twice = callOf(opened, answered('deny', { answeredBy: 'kim' }), answered('approve'))
    expect(twice.call.status).toBe('denied')
    expect(twice.state.interrupts['i']).toMatchObject({
      answer: { type: 'deny' },
      answeredAt: at,
      answeredBy: 'kim',
    })
    expect(callOf(opened, answered('approve')).state.interrupts['i']).not.toHaveProperty(
      'answeredBy',
    )
    // What has ended does not wait any more, and an answer to nothing changes nothing.
    expect(callOf(end, opened).call.status).toBe('success')
    expect(callOf(opened, end, answered('deny')).call.status).toBe('success')
    expect(callOf(answered('deny')).call.status).toBe('running')
  })

  test('TP-33 a call that a person put in the place of another one is a call of the turn', () => {
    const message = (calls: readonly object[]) => ({
      id: 'm',
      type: 'assistant',
      content: [],
      timestamp: at,
      toolCalls: calls,
    })
    const first = { toolCallId: 'c1', toolName: 'f', arguments: { n: 1 } }
    const changed = {
      toolCallId: 'c2',
      toolName: 'f',
      arguments: { n: 2 },
      metadata: { skein: { changedFrom: 'c1' } },
    }
    const stranger = { toolCallId: 'c3', toolName: 'f', arguments: {} }
    const state = foldThread([
      { type: 'turn_start', at, turnId: 't', agentId: 'a' },
      { type: 'message_added', at, turnId: 't', message: message([first]) },
      {
        type: 'message_updated',
        at,
        messageId: 'm',
        message: message([first, changed, stranger]),
      },
      { type: 'message_updated', at, messageId: 'nobody', message: message([changed]) },
    ] as never as ThreadEvent[])
    const { calls } = state.turns[0] as AgentTurnState
    expect(calls).toEqual([
      { ...first, status: 'requested' },
      { toolCallId: 'c2', toolName: 'f', arguments: { n: 2 }, status: 'requested' },
    ])
  })
})

test('TP-52 transient data is not stored, and events that nobody knows are', () => {
  const custom = { type: 'custom_event', at, name: 'x', data: 1 } as const
  expect(isEphemeralEvent(custom)).toBe(false)
  expect(isEphemeralEvent({ ...custom, isTransient: true })).toBe(true)
  expect(isEphemeralEvent({ ...custom, isTransient: false })).toBe(false)
  expect(isEphemeralEvent({ type: 'hologram_shown', at })).toBe(false)
  expect(isEphemeralEvent({ type: 'toString', at })).toBe(false)
  for (const type of [
    'text_delta',
    'reasoning_delta',
    'tool_call_delta',
    'tool_execution_progress',
  ])
    expect(isEphemeralEvent({ type, at })).toBe(true)
  for (const type of ['message_added', 'step_reset', 'status_changed', 'usage_recorded'])
    expect(isEphemeralEvent({ type, at })).toBe(false)
})

describe('TP-54 the fold, event by event', () => {
  const t = (second: number) => `2026-05-01T14:00:${String(second).padStart(2, '0')}Z`
  const fold = (...list: readonly object[]) => foldThread(list as unknown as ThreadEvent[])
  const created = { type: 'thread_created', at: t(0), threadId: 'th' }
  const start = { type: 'turn_start', at: t(1), turnId: 't', agentId: 'a' }
  const turnOf = (...list: readonly object[]) => fold(start, ...list).turns[0] as AgentTurnState

  test('TP-54 title, metadata, parent and the latest time', () => {
    const state = fold(
      { ...created, title: 'One', metadata: { a: 1, b: 2 }, parentThreadId: 'p' },
      { type: 'thread_updated', at: t(5), metadata: { b: null, c: 3 } },
      { type: 'thread_updated', at: t(3), title: 'Two' },
    )
    expect(state).toMatchObject({
      threadId: 'th',
      title: 'Two',
      metadata: { a: 1, c: 3 },
      parentThreadId: 'p',
      createdAt: t(0),
      updatedAt: t(5), // an event with an earlier time does not set it back
      eventCount: 3,
    })
    expect(state.metadata).not.toHaveProperty('b')
    expect(
      fold({ ...created, title: 'One' }, { type: 'thread_updated', at, title: '' }).title,
    ).toBe('')
    expect(fold(created, { type: 'hologram_shown', at: t(9) }).updatedAt).toBe(t(9))
    const bare = fold(created)
    expect(bare).not.toHaveProperty('title')
    expect(bare).not.toHaveProperty('parentThreadId')
    // Only the creation of a thread says what it is.
    const update = { type: 'thread_updated', at: t(1), threadId: 'x', parentThreadId: 'y' }
    expect(fold(created, update)).toMatchObject({ threadId: 'th', createdAt: t(0) })
    expect(fold(created, update)).not.toHaveProperty('parentThreadId')
  })

  test('TP-54 status and its text, usage of no message, files and children', () => {
    const state = fold(
      created,
      { type: 'status_changed', at: t(1), status: 'running', text: 'busy' },
      { type: 'usage_recorded', at: t(2), usage: { input_tokens: 2 } },
      { type: 'usage_recorded', at: t(2), usage: { input_tokens: 3, output_tokens: 1 } },
      { type: 'usage_recorded', at: t(2), usage: {} },
      { type: 'file_written', at: t(3), path: '/a', mediaType: 'm', sizeBytes: 1, hash: 'h' },
      { type: 'file_written', at: t(3), path: '/b', mediaType: 'm', sizeBytes: 2 },
      { type: 'file_removed', at: t(4), path: '/b' },
      { type: 'subagent_created', at: t(4), reference: 'c', name: 'n', isBlocking: true },
      { type: 'subagent_updated', at: t(5), reference: 'c', status: 'idle', statusText: 'x' },
      { type: 'subagent_updated', at: t(5), reference: 'c', status: 'awaiting_human' },
      { type: 'subagent_updated', at: t(5), reference: 'nobody', status: 'idle' },
    )
    expect(state).toMatchObject({ status: 'running', statusText: 'busy' })
    expect(state.usage).toEqual({ input_tokens: 5, output_tokens: 1 })
    expect(state.files).toEqual({
      '/a': { path: '/a', mediaType: 'm', sizeBytes: 1, hash: 'h', writtenAt: t(3) },
    })
    expect(state.subagents).toEqual({
      c: {
        reference: 'c',
        name: 'n',
        isBlocking: true,
        createdAt: t(4),
        status: 'awaiting_human',
        statusText: 'x',
      },
    })
    const quiet = fold(
      { type: 'status_changed', at: t(1), status: 'running', text: 'busy' },
      { type: 'status_changed', at: t(2), status: 'idle' },
    )
    expect(quiet.status).toBe('idle')
    expect(quiet).not.toHaveProperty('statusText')
  })

  test('TP-42 pieces grow the block of their id and type; a step begins anew', () => {
    const text = (blockId: string, piece: string) => ({
      type: 'text_delta',
      at: t(2),
      turnId: 't',
      blockId,
      text: piece,
    })
    const thought = { ...text('a', 'hm'), type: 'reasoning_delta' }
    const live = turnOf(text('a', '1'), thought, text('b', '2'), text('a', '3'))
    expect(live.draft).toEqual({
      stepId: '',
      blocks: [
        { type: 'text', id: 'a', text: '13' },
        { type: 'reasoning', id: 'a', text: 'hm' },
        { type: 'text', id: 'b', text: '2' },
      ],
      events: [],
    })
    const step = { type: 'step_start', at: t(2), turnId: 't', stepId: 's1' }
    const note = { type: 'custom_event', at: t(3), name: 'n', data: 1, turnId: 't' }
    for (const type of ['step_start', 'step_reset']) {
      const again = turnOf(step, text('a', '1'), note, { ...step, type, stepId: 's2' })
      expect(again.draft).toEqual({ stepId: 's2', blocks: [], events: [] })
      // What happened meanwhile is not lost with the words.
      expect(again.items).toEqual([{ kind: 'event', event: note }])
    }
    expect(turnOf(step, text('a', '1'), { ...step, type: 'step_end' }).draft?.blocks).toHaveLength(
      1,
    )
  })

  test('TP-42 events while a model speaks stand after its message; without a turn, in the last one', () => {
    const note = (data: number, turnId?: string) => ({
      type: 'custom_event',
      at: t(3),
      name: 'n',
      data,
      ...(turnId !== undefined && { turnId }),
    })
    const piece = { type: 'text_delta', at: t(2), turnId: 't', blockId: 'a', text: 'x' }
    const message = {
      type: 'message_added',
      at: t(4),
      turnId: 't',
      message: { id: 'm', type: 'assistant', content: [], timestamp: t(4) },
    }
    const kinds = (turn: AgentTurnState) =>
      turn.items.map((item) =>
        item.kind === 'event' ? (item.event as { data: number }).data : item.kind,
      )
    expect(kinds(turnOf(note(0, 't'), piece, note(1, 't'), note(2), message, note(3)))).toEqual([
      0,
      'message',
      1,
      2,
      3,
    ])
    const ended = (outcome: string) => ({ type: 'turn_end', at: t(5), turnId: 't', outcome })
    const cut = turnOf(piece, note(1, 't'), ended('interrupted'), note(2, 't'))
    expect(kinds(cut)).toEqual([1, 2])
    expect(cut).toMatchObject({ outcome: 'interrupted', endedAt: t(5) })
    expect(cut.draft).toEqual({
      stepId: '',
      blocks: [{ type: 'text', id: 'a', text: 'x' }],
      events: [],
    })
    expect(cut).not.toHaveProperty('reason')
    expect(turnOf(piece, ended('completed'))).not.toHaveProperty('draft')
    expect(turnOf(ended('parked'))).not.toHaveProperty('draft')
    // Before the first turn there is no turn to put it in; an unknown turn means the last one.
    expect(fold(note(1)).turns).toEqual([])
    const other = { ...start, turnId: 't2' }
    const two = fold(start, other, note(1, 't'), note(2, 'nobody'), note(3))
    expect((two.turns as AgentTurnState[]).map(kinds)).toEqual([[1], [2, 3]])
  })

  test('TP-54 a turn whose start is missing is opened by what it holds', () => {
    const message = {
      type: 'message_added',
      at: t(4),
      turnId: 't9',
      agentId: 'ada',
      message: { id: 'm', type: 'assistant', content: [], timestamp: t(4) },
    }
    expect(fold(message).turns).toEqual([
      {
        kind: 'agent',
        turnId: 't9',
        agentId: 'ada',
        startedAt: t(4),
        outcome: 'running',
        items: [{ kind: 'message', at: t(4), agentId: 'ada', message: message.message }],
        calls: [],
        continues: undefined,
      },
    ])
    const end = {
      type: 'tool_execution_end',
      at: t(5),
      turnId: 't8',
      toolCallId: 'c',
      toolName: 'f',
      outcome: 'success',
      result: 1,
    }
    expect(fold(end).turns).toMatchObject([
      { turnId: 't8', agentId: '', startedAt: t(5), items: [{ kind: 'result', toolName: 'f' }] },
    ])
    const user = {
      type: 'message_added',
      at: t(4),
      turnId: 'u',
      message: { id: 'm', type: 'user', content: [], timestamp: t(4) },
    }
    expect(fold(user).turns[0]).not.toHaveProperty('userId')
    expect(fold(user, { ...user, message: { ...user.message, id: 'm2' } }).turns).toHaveLength(1)
  })
})
