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
      const start = performance.now()
      const folded = foldThread([{ type: 'turn_start', at, turnId: 't', agentId: 'a' }, ...list])
      expect((folded.turns[0] as AgentTurnState).draft?.blocks[0]?.text).toHaveLength(count * 5)
      return performance.now() - start
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
