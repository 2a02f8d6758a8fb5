import type { Store, ThreadHead } from '@skein/runtime'
import { expect } from 'vitest'
import { foldKernel } from '../../src/state/fold.ts'
import type { SentMessage } from '../simulation/clients.ts'
import { callsHaveOneResult } from '../simulation/invariants/calls.ts'
import { childrenAreHeardOnce } from '../simulation/invariants/children.ts'
import type { Finished, FinishedThread } from '../simulation/invariants/finished.ts'
import { numbersAreWhole } from '../simulation/invariants/logs.ts'
import { messagesAreTakenOnce } from '../simulation/invariants/messages.ts'
import { actionOf, type EffectsFile } from './kill-agents.ts'

type Threads = ReadonlyMap<string, FinishedThread>

/** Returns the heads of all threads, oldest first. */
export async function allHeads(store: Pick<Store, 'list'>): Promise<readonly ThreadHead[]> {
  const heads: ThreadHead[] = []
  for (;;) {
    const page = await store.list({ limit: 1000, offset: heads.length, sort: 'oldest' })
    heads.push(...page)
    if (page.length < 1000) return heads
  }
}

/** Reads every thread of a store. */
export async function finishedThreads(store: Store): Promise<Map<string, FinishedThread>> {
  const threads = new Map<string, FinishedThread>()
  for (const head of await allHeads(store)) {
    const log = await store.events(head.id)
    threads.set(head.id, {
      head,
      log,
      events: log.map(({ event }) => event),
      state: foldKernel(log),
    })
  }
  return threads
}

/** What must be true of all threads, whatever befell them. Returns what is not. */
export function checkThreads(
  threads: ReadonlyMap<string, FinishedThread>,
  sent: readonly SentMessage[] = [],
): string[] {
  const violations: string[] = []
  const world = { violate: (what: string) => violations.push(what) }
  const run = { threads, world, clients: { sent } } as unknown as Finished // what the checks look at
  numbersAreWhole(run)
  messagesAreTakenOnce(run)
  callsHaveOneResult(run)
  childrenAreHeardOnce(run)
  return violations
}

/** What must be true of the agents of `kill-agents.ts` when all their work is done, whoever died meanwhile. */
export async function checkKilled(
  store: Store,
  {
    wanted,
    effects,
  }: {
    /** The ids of the acknowledged messages of each root thread, in the order in which they were sent. */
    readonly wanted: readonly (readonly string[])[]
    readonly effects: EffectsFile
  },
): Promise<{ readonly threads: number; readonly outcomes: Record<string, number> }> {
  const threads = await finishedThreads(store)
  expect(checkThreads(threads)).toEqual([])
  checkConversations(threads, wanted)
  return { threads: threads.size, outcomes: checkEffects(threads, effects.lines()) }
}

/** Every message was taken, in order, and every one that asks for something got it asked for once. */
function checkConversations(threads: Threads, wanted: readonly (readonly string[])[]): void {
  const roots = [...threads.values()].filter(({ head }) => head.parentId === null)
  expect(roots.length).toBe(wanted.length)
  for (const { head, events, state } of roots) {
    const messages = wanted[Number(head.clientId!.split('-')[1])]!
    const taken = events.flatMap((event) =>
      event.type === 'message_added' ? (event.queueId ?? []) : [],
    )
    expect(taken.filter((id) => id.startsWith('m-'))).toEqual(messages)
    expect([head.lifecycle, state.queue, state.session]).toEqual(['idle', [], undefined])
    const called = state.entries.flatMap(({ calls }) =>
      calls.map(({ call }) => String(call.arguments['ref'])),
    )
    expect(called.toSorted()).toEqual(messages.filter(actionOf).toSorted())
  }
}

/** A write that succeeded happened once; one in doubt at most once; none that may not be repeated twice. */
function checkEffects(threads: Threads, lines: readonly string[]): Record<string, number> {
  const counts = new Map<string, number>()
  for (const line of lines) counts.set(line, (counts.get(line) ?? 0) + 1)
  const outcomes: Record<string, number> = { repeatedPuts: 0 }
  const count = (key: string): void => void (outcomes[key] = (outcomes[key] ?? 0) + 1)
  for (const [line, times] of counts)
    if (line.startsWith('put')) outcomes['repeatedPuts']! += times - 1
    else expect(times, line).toBe(1)
  for (const { events, state } of threads.values()) {
    for (const event of events)
      if (event.type === 'tool_execution_end') count(`${event.toolName} ${event.outcome}`)
      else if (event.type === 'effect_ended') count(`bill ${event.outcome}`)
    for (const { call, outcome, isUnknown } of state.entries.flatMap(({ calls }) => calls)) {
      if (!['send', 'put', 'pay'].includes(call.toolName) || outcome?.type !== 'done' || isUnknown)
        continue
      expect(counts.get(`${call.toolName} ${String(call.arguments['ref'])}`) ?? 0).toBeGreaterThan(
        0,
      )
    }
    checkTimers(events, counts)
  }
  return outcomes
}

/** A timer that was set is never lost: its effect has ended, and one that is done has happened. */
function checkTimers(events: FinishedThread['events'], counts: ReadonlyMap<string, number>): void {
  const scheduled = new Map<string, string>()
  for (const event of events)
    if (event.type === 'effect_scheduled')
      scheduled.set(event.effectId, String((event.args as { readonly ref?: string }).ref))
  const ended = events.filter((event) => event.type === 'effect_ended')
  expect(ended.map(({ effectId }) => effectId).toSorted()).toEqual([...scheduled.keys()].toSorted())
  for (const { effectId, outcome } of ended)
    if (outcome === 'done') expect(counts.get(`bill ${scheduled.get(effectId)}`)).toBe(1)
}
