import { expect, test } from 'vitest'
import { testLimits } from '../../test/api/harness.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { ResolvedAgent } from '../definitions/resolved.ts'
import { foldKernel } from '../state/fold.ts'
import { next } from './next.ts'

test('a thread whose effect was approved waits for its agent, and is not parked without a time', () => {
  const at = '2026-01-01T00:00:00.000Z'
  const later = '2026-01-02T00:00:00.000Z'
  const interrupt = { id: 'i1', toolCallId: 'e1', kind: 'approval' as const, request: null }
  const events: RuntimeEvent[] = [
    { type: 'thread_created', version: 2, at, threadId: 't1', agent: 'gone', depth: 0 },
    { type: 'immediate_done', at, agent: 'gone' },
    { type: 'stop_requested', at },
    { type: 'effect_scheduled', at, effectId: 'e1', name: 'charge', args: {}, runAt: at },
    { type: 'interrupt_opened', at, turnId: '', effectId: 'e1', interrupt, expiresAt: later },
    { type: 'interrupt_answered', at, interruptId: 'i1', answer: { type: 'approve' } },
  ]
  const state = foldKernel(events.map((event, place) => ({ seq: place + 1, event })))
  const now = Date.parse(at)
  const action = next(state, { agent: undefined, epoch: 2, now, limits: testLimits })
  expect(action).toEqual({ type: 'await_agent' })
})

test('SA-42 of two answers to one call that waits for a child only the first is used', () => {
  const at = '2026-01-01T00:00:00.000Z'
  const later = '2026-01-02T00:00:00.000Z'
  const toolCalls = [{ toolCallId: 'c1', toolName: 'helper', arguments: {} }]
  const message = { id: 'm1', type: 'assistant', timestamp: at, content: [], toolCalls } as const
  const interrupt = { id: 'i1', toolCallId: 'c1', kind: 'child' as const, request: null }
  const first = { type: 'result', value: 'the result' } as const
  const second = { type: 'error', message: 'It was terminated.' } as const
  const events: RuntimeEvent[] = [
    { type: 'thread_created', version: 2, at, threadId: 't1', agent: 'boss', depth: 0 },
    { type: 'message_added', at, turnId: 'u1', side: 'a', message },
    { type: 'interrupt_opened', at, turnId: 'u1', interrupt },
    { type: 'interrupt_answered', at, interruptId: 'i1', answer: first, attachments: ['/a'] },
    { type: 'interrupt_answered', at: later, interruptId: 'i1', answer: second },
  ]
  const state = foldKernel(events.map((event, place) => ({ seq: place + 1, event })))
  expect(state.interrupts.get('i1')).toMatchObject({
    answer: first,
    answeredAt: at,
    attachments: ['/a'],
  })
})

test('a thread that was stopped before it began waits for a message, with its agent and without', () => {
  const at = '2026-01-01T00:00:00.000Z'
  const message = { id: 'm1', type: 'user', timestamp: at, content: [] } as const
  const events: RuntimeEvent[] = [
    { type: 'thread_created', version: 2, at, threadId: 't1', agent: 'desk', depth: 0 },
    { type: 'message_queued', at, queueId: 'q1', role: 'user', message },
    { type: 'stop_requested', at },
  ]
  const side = { hooks: [{ hook: 'after_thread_created' }], prompt: { tools: [] } }
  const agent = { name: 'desk', a: side } as unknown as ResolvedAgent
  const actions = (more: readonly RuntimeEvent[]): string[] => {
    const log = [...events, ...more].map((event, place) => ({ seq: place + 1, event }))
    const options = { epoch: 2, now: Date.parse(at), limits: testLimits }
    return [agent, undefined].map((one) => next(foldKernel(log), { ...options, agent: one }).type)
  }
  expect(actions([])).toEqual(['park', 'park'])
  expect(actions([{ type: 'resume_requested', at }])).toEqual(['activate', 'await_agent'])
})
