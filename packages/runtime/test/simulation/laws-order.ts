import type { Commit, RuntimeEvent, Store } from '@skein/runtime'
import type { Finished, FinishedThread } from './invariants/finished.ts'
import type { PlantParts } from './plants.ts'

/** How often the simulated agents may hand over: few, so that runs reach the limit. */
export const MAX_HANDOFFS = 1

/** The tools of `simulated-tools.ts` that change something. */
const WRITES: ReadonlySet<string> = new Set(['put', 'send', 'ship', 'pay', 'refund', 'plan'])

/** Order of writes, unique call ids, one report per child, bounded handoffs, no drain without progress. */
export function orderLaws({ world, threads }: Finished): void {
  for (const thread of threads.values()) {
    const id = thread.head.id
    for (const law of [callIdsAreUnique, writesWait, disposableChildEnds, handoffsEnd, progress])
      for (const problem of law(thread)) world.violate(`${id} (${thread.head.agent}): ${problem}`)
  }
}

interface LoggedCall {
  readonly toolCallId: string
  readonly toolName: string
}

function callsIn(event: RuntimeEvent): readonly LoggedCall[] {
  if (event.type !== 'message_added') return []
  return (event.message as { readonly toolCalls?: readonly LoggedCall[] }).toolCalls ?? []
}

function* callIdsAreUnique({ events }: FinishedThread): Generator<string> {
  const seen = new Set<string>()
  for (const event of events)
    for (const { toolCallId } of callsIn(event)) {
      if (toolCallId === '' || seen.has(toolCallId)) yield `two calls have the id "${toolCallId}"`
      seen.add(toolCallId)
    }
}

/** A write starts only when every earlier call of its message has ended. */
function* writesWait({ events }: FinishedThread): Generator<string> {
  const earlier = new Map<string, readonly LoggedCall[]>()
  const ended = new Set<string>()
  for (const event of events) {
    const calls = callsIn(event)
    calls.forEach(({ toolCallId }, place) => earlier.set(toolCallId, calls.slice(0, place)))
    // A changed call stands behind the one whose place it takes, and later calls wait for both.
    if (event.type === 'call_changed') {
      const { toolCallId, changedTo } = event
      const made = { toolCallId: changedTo, toolName: 'changed' }
      for (const [id, before] of earlier)
        if (before.some((call) => call.toolCallId === toolCallId))
          earlier.set(id, [...before, made])
      earlier.set(changedTo, earlier.get(toolCallId) ?? [])
    }
    if (event.type === 'tool_execution_end') ended.add(event.toolCallId)
    if (event.type !== 'tool_execution_start' || !WRITES.has(event.toolName)) continue
    const open = earlier.get(event.toolCallId)?.find((call) => !ended.has(call.toolCallId))
    if (open) yield `${event.toolName} started before ${open.toolName} of its message had ended`
  }
}

/** A child that is not resumable has one session and ends with it. */
function* disposableChildEnds({ events, state }: FinishedThread): Generator<string> {
  if (!state.parent || state.parent.isResumable) return
  const ends = events.filter(
    (event) => event.type === 'session_end' && event.reason !== 'handoff',
  ).length
  if (ends > 1) yield `the disposable child had ${ends} sessions`
  if (ends > 0 && !state.terminated) yield 'the disposable child reported and lives on'
}

/** Between two messages of people, a chain of handoffs is no longer than the limit. */
function* handoffsEnd({ events }: FinishedThread): Generator<string> {
  const fromPeople = new Set<string>()
  let handoffs = 0
  let isHandoff = false
  for (const event of events) {
    if (event.type === 'message_queued' && event.resumes && event.metadata?.['from'] !== 'parent')
      fromPeople.add(event.queueId)
    if (event.type === 'message_added' && fromPeople.has(event.queueId ?? '')) handoffs = 0
    if (event.type === 'session_end') isHandoff = false
    if (event.type === 'agent_handoff') {
      isHandoff = true
      if (++handoffs > MAX_HANDOFFS) yield `it was handed over ${handoffs} times in a row`
    }
    if (event.type === 'session_start' && !isHandoff) handoffs = 0
  }
}

function* progress({ events }: FinishedThread): Generator<string> {
  for (const event of events)
    if (event.type === 'error_raised' && event.code === 'NO_PROGRESS') yield event.message
}

type OrderPlant = (store: Store, parts: Pick<PlantParts, 'spoilTools'>) => Store

/** Planted bugs against these laws; see `plants.ts`. */
export const orderPlants: Readonly<Record<string, OrderPlant>> = {
  /** A later message has calls with ids of an earlier one. */
  'reused-call-ids': (store) => {
    const first = new Map<string, string>()
    return spoiling(store, ({ point, threads: [own] }) => {
      for (const event of point.startsWith('answer') ? (own?.append ?? []) : []) {
        const [call, ...rest] = callsIn(event)
        if (!own || !call) continue
        const toolCallId = first.get(own.id) ?? call.toolCallId
        first.set(own.id, toolCallId)
        replaceCalls(event, [{ ...call, toolCallId }, ...rest])
      }
    })
  },

  /** An interrupt that nobody answered in time is closed, and stays open. */
  'stuck-action': (store) =>
    spoiling(store, ({ point, threads: [own] }) => {
      if (point === 'expire' && own) Object.assign(own, { append: [] })
    }),

  /** Writes are taken for reads, so they do not wait for the calls before them. */
  'early-write': (store, { spoilTools }) => {
    spoilTools('writes that only read')
    return store
  },

  /** A disposable child reports and is not ended. */
  'living-child': (store) =>
    spoiling(store, ({ point, threads: [own] }) => {
      if (
        !point.split('+').includes('session_end') ||
        !own?.append?.some((event) => isReportedEnd(event))
      )
        return
      const append = own.append.filter((event) => !isReportedEnd(event))
      Object.assign(own, { append, head: { ...own.head, lifecycle: 'idle' } })
    }),

  /** The count of handoffs starts again with every agent. */
  'forgotten-handoffs': (store) =>
    spoiling(store, ({ threads: [own] }) => {
      for (const event of own?.append ?? [])
        if (event.type === 'session_end' && event.reason === 'handoff')
          Object.assign(event, { reason: 'handed_over' })
    }),
}

function isReportedEnd(event: RuntimeEvent): boolean {
  return event.type === 'thread_terminated' && event.hasReported === true
}

/** Changes the event itself, because the drain folds the events that it hands to the store. */
function replaceCalls(event: RuntimeEvent, toolCalls: readonly LoggedCall[]): void {
  if (event.type === 'message_added')
    Object.assign(event, { message: { ...event.message, toolCalls } })
}

/** Changes what the runtime hands to the store, in place, because the drain folds the same events. */
export function spoiling(store: Store, spoil: (commit: Commit) => void): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name)
      if (name === 'commit')
        return (commit: Commit) => {
          spoil(commit)
          return target.commit(commit)
        }
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}
