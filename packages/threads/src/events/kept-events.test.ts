import { expect, test } from 'vitest'
import { opening, response } from '../../test/sample-events.ts'
import type { AgentTurn } from '../document/thread.ts'
import type { ThreadEvent, UnknownThreadEvent } from './event.ts'
import { threadFromEvents } from './event-to-thread.ts'
import { foldThread } from './reduce-thread.ts'

const events = [...opening, ...response]
const at = '2026-05-01T14:00:00Z'
const kinds = {
  custom: { type: 'custom_event', at, name: 'probe', data: { n: 7 } },
  error: { type: 'error_raised', at, code: 'PROBE', message: 'probe' },
  unknown: { type: 'probe', at, n: 7 },
} as Record<string, ThreadEvent | UnknownThreadEvent>

test.each(Object.keys(kinds).flatMap((kind) => [true, false].map((is) => [kind, is] as const)))(
  'TP-44 wherever an event of the kind %s arrives, it is in the document or reported (running turns: %s)',
  (kind, includeRunning) => {
    const probe = kinds[kind]!
    for (let end = 0; end <= events.length; end++) {
      for (let place = Math.max(0, end - 12); place <= end; place++) {
        const list = [...events.slice(0, place), probe, ...events.slice(place, end)]
        const { value, lost } = threadFromEvents(list, { includeRunning })
        const own = value.turns.flatMap((turn) => (turn.turn_type === 'agent' ? turn.messages : []))
        const found = own.filter((message) => /probe/i.test(JSON.stringify(message))).length
        const isReported = lost.some(({ reason }) => /probe|error|still running/i.test(reason))
        const where = `${kind} at ${place} of ${end}`
        if (found !== 1) expect([where, isReported]).toEqual([where, true])
        expect([where, found > 1]).toEqual([where, false])
      }
    }
  },
)

test('TP-44 TP-54 events before the first turn open the document of the first agent turn', () => {
  const [probe, other] = [kinds['custom']!, kinds['unknown']!]
  const state = foldThread([probe, other, ...events])
  expect(state.beforeTurns).toEqual([
    { kind: 'event', event: probe },
    { kind: 'event', event: other },
  ])
  expect(foldThread(events)).not.toHaveProperty('beforeTurns')
  const early = foldThread([probe])
  foldThread([other], early)
  expect(early.beforeTurns).toHaveLength(1)
  const agent = threadFromEvents([probe, other, ...events]).value.turns[1] as AgentTurn
  expect(agent.messages.slice(0, 2)).toMatchObject([
    { message_type: 'system', event_data: { n: 7 } },
    { message_type: 'system', event_type: 'probe' },
  ])
})
