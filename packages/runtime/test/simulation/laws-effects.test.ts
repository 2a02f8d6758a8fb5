import { expect, test } from 'vitest'
import type { RuntimeEvent } from '@skein/runtime'
import { effectFaults } from './laws-effects.ts'

const at = '2026-01-01T00:00:00.000Z'

function faultsOf(events: readonly object[], hasHappened = true): string[] {
  const created = { type: 'thread_created', at, threadId: 't', agent: 'a', version: 2, depth: 0 }
  const log = [created, ...events].map((event, index) => ({
    seq: index + 1,
    event: { at, ...event } as RuntimeEvent,
  }))
  return effectFaults(log, () => hasHappened)
}

const scheduled = (effectId: string, name: string) => ({
  type: 'effect_scheduled',
  effectId,
  name,
  args: { ref: 'r' },
  runAt: at,
})
const started = (effectId: string, attempt = 1) => ({
  type: 'effect_started',
  effectId,
  attempt,
  epoch: attempt,
})
const ended = (effectId: string, outcome: string, more = {}) => ({
  type: 'effect_ended',
  effectId,
  outcome,
  ...more,
})
const asked = (id: string, kind: string) => ({
  type: 'interrupt_opened',
  turnId: '',
  effectId: 'e1',
  interrupt: { id, toolCallId: 'e1', kind, request: {} },
})
const answered = (interruptId: string, answer: object) => ({
  type: 'interrupt_answered',
  interruptId,
  answer,
})
const mail = {
  type: 'message_queued',
  queueId: 'q',
  role: 'user',
  message: { id: 'q', type: 'user', timestamp: at, content: [] },
}

test('an effect that is done has happened', () => {
  const log = [scheduled('e1', 'sync'), started('e1'), ended('e1', 'done')]
  expect(faultsOf(log)).toEqual([])
  expect(faultsOf(log, false)).toEqual(['sync r is done, and never happened'])
})

test('a high-risk effect has an approval for every start, also after a doubt', () => {
  const first = [
    scheduled('e1', 'charge'),
    asked('i1', 'approval'),
    answered('i1', { type: 'approve' }),
    started('e1'),
    asked('i2', 'in_doubt'),
    answered('i2', { type: 'result', value: 'absent' }),
    ended('e1', 'failed', { runAt: at, isRetry: true }),
  ]
  const again = [asked('i3', 'approval'), answered('i3', { type: 'approve' }), started('e1', 2)]
  expect(faultsOf([...first, ...again])).toEqual([])
  const without = 'charge (e1) was started without an approval of its own'
  expect(faultsOf([...first, started('e1', 2)])).toEqual([without])
})

test('a message that waits goes before the next effect, once one has failed', () => {
  const failing = [scheduled('e1', 'bill'), scheduled('e2', 'bill'), started('e1'), mail]
  const next = [ended('e1', 'failed'), started('e2')]
  expect(faultsOf([...failing, ...next])).toEqual([
    'e2 ran before a message, although e1 had failed',
  ])
  const session = { type: 'session_start', sessionId: 's', agent: 'a' }
  const taken = { ...mail, type: 'message_added', turnId: 'q', side: 'b' }
  const inBetween = [ended('e1', 'failed'), session, taken, started('e2')]
  expect(faultsOf([...failing, ...inBetween])).toEqual([])
})
