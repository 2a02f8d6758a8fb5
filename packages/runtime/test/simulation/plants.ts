import type { Commit, RuntimeEvent, Store, ThreadChange } from '@skein/runtime'
import type { Canary } from './canary.ts'
import type { Chance } from './chance.ts'
import { busyPlants } from './laws-busy.ts'
import { grantPlants } from './laws-grants.ts'
import { limitPlants } from './laws-limits.ts'
import { orderPlants } from './laws-order.ts'
import { worldPlants } from './laws-world.ts'
import type { ToolBug } from './world.ts'

/**
 * A bug that is planted between the runtime and its store, to see that the simulation finds it. What
 * the runtime hands over is changed on its way, as a runtime with that bug would have written it.
 */
export type Plant = (store: Store, parts: PlantParts) => Store

export interface PlantParts {
  readonly chance: Chance
  readonly canary: Canary
  /** Gives the tools or the effects of the run a bug. */
  readonly spoilTools: (bug: ToolBug) => void
  /** Another point at which the process may die; then it throws. */
  readonly mayCrash: (commit: Commit) => void
}

export const plants: Readonly<Record<string, Plant>> = {
  ...orderPlants,
  ...busyPlants,
  ...limitPlants,
  ...grantPlants,
  ...worldPlants,

  /** Writers are not checked against the epoch. */
  'lost-fence': (store) =>
    rewriting(store, (commit) => onChanges(commit, ({ fence: _fence, ...change }) => change)),

  /** A child's result is handed to the parent a second time, as a retry without a key would. */
  'double-delivery': (store, { chance }) =>
    committing(store, async (commit) => {
      const result = await store.commit(commit)
      const again = commit.threads.flatMap(({ id, append = [] }) =>
        append.filter(isReport).map((event) => ({ id, append: [renamed(event)] })),
      )
      if (again.length > 0 && chance.happens(0.3))
        await store.commit({ point: commit.point, threads: again })
      return result
    }),

  /** The child's end and the parent's inbox are two transactions; a crash may fall between. */
  'split-transaction': (store, { mayCrash }) =>
    committing(store, async (commit) => {
      const [own, ...others] = commit.threads
      if (!commit.point.split('+').includes('session_end') || !own || others.length === 0)
        return store.commit(commit)
      const result = await store.commit({ ...commit, threads: [own] })
      mayCrash(commit)
      await store.commit({ point: commit.point, threads: others })
      return result
    }),

  /** A write that a crash cut off is simply made again: the gates take every write for a repeatable one. */
  'unsafe-rerun': (store, { spoilTools }) => {
    spoilTools('repeatable writes')
    return store
  },

  /** An effect that a crash cut off is simply run again. */
  'unsafe-effect': (store, { spoilTools }) => {
    spoilTools('repeatable effects')
    return store
  },

  /** A drain parks without looking whether mail has come. */
  'dropped-wake-up': (store) =>
    rewriting(store, (commit) =>
      commit.point.split('+').includes('park')
        ? onChanges(commit, ({ expectSeq: _expected, ...change }) => change)
        : commit,
    ),

  /** Messages that wait are taken in the wrong order. */
  'lost-order': (store) =>
    rewriting(store, (commit) =>
      onEvents(commit, (events) => {
        const taken = events.filter(isTaken).toReversed()
        return events.map((event) => (isTaken(event) ? taken.shift()! : event))
      }),
    ),

  /** Results are stored as the tool gave them. */
  'forgotten-redaction': (store, { canary }) =>
    rewriting(store, (commit) =>
      onEvents(commit, (events) =>
        events.map((event) =>
          event.type === 'tool_execution_end'
            ? (JSON.parse(
                JSON.stringify(event).replaceAll(
                  '[redacted]',
                  JSON.stringify(canary.secret).slice(1, -1),
                ),
              ) as RuntimeEvent)
            : event,
        ),
      ),
    ),

  /** The end of a call is written without its result being final: it is written again at the next. */
  'double-result': (store, { chance }) =>
    rewriting(store, (commit) =>
      commit.point.startsWith('call_end') && chance.happens(0.05)
        ? onEvents(commit, (events) =>
            events.flatMap((event): RuntimeEvent[] =>
              event.type === 'tool_execution_end' ? [event, event] : [event],
            ),
          )
        : commit,
    ),
}

function rewriting(store: Store, rewrite: (commit: Commit) => Commit): Store {
  return committing(store, (commit) => store.commit(rewrite(commit)))
}

function committing(store: Store, commit: Store['commit']): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name === 'commit') return commit
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

function onChanges(commit: Commit, change: (one: ThreadChange) => ThreadChange): Commit {
  return { ...commit, threads: commit.threads.map(change) }
}

function onEvents(
  commit: Commit,
  change: (events: readonly RuntimeEvent[]) => readonly RuntimeEvent[],
): Commit {
  return onChanges(commit, (one) => (one.append ? { ...one, append: change(one.append) } : one))
}

type Report = Extract<RuntimeEvent, { type: 'message_queued' | 'interrupt_answered' }>

function isReport(event: RuntimeEvent): event is Report {
  if (event.type === 'interrupt_answered') return event.report !== undefined
  return event.type === 'message_queued' && event.subagentId !== undefined
}

function renamed(event: Report): RuntimeEvent {
  return event.type === 'message_queued' ? { ...event, queueId: `${event.queueId}-again` } : event
}

function isTaken(event: RuntimeEvent): boolean {
  return event.type === 'message_added' && event.queueId !== undefined
}
