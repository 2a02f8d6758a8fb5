import { canonicalJson, type JsonValue } from '@skein/base'
import type { RuntimeEvent, SendMessage, Store } from '@skein/runtime'
import type { Finished, FinishedThread } from './invariants/finished.ts'
import { Grants } from './laws-grants.ts'
import { spoiling } from './laws-order.ts'

/** The tools of `simulated-tools.ts` that change something outside. */
const WRITES: ReadonlySet<string> = new Set(['put', 'send', 'ship', 'pay', 'refund'])

/** What became of the messages that did not wait for the turn to end, and of what they cut or dropped. */
export function busyLaws({ world, threads, clients }: Finished): void {
  for (const thread of threads.values())
    for (const law of [
      withdrawnStaysOut,
      cutsAreKept,
      cutsCut,
      restartDrops,
      droppedIsNotShown,
      whatRunsWasApproved,
    ])
      for (const problem of law(thread, clients.policies))
        world.violate(`${thread.head.id} (${thread.head.agent}): ${problem}`)
  for (const { threadId, messageId } of clients.rejected)
    if (threads.get(threadId)?.state.queuedIds.has(messageId))
      world.violate(`${threadId}: ${messageId} was refused and is there`)
}

type Policies = ReadonlyMap<string, SendMessage['ifBusy']>

/** A message that was withdrawn is never taken. */
function* withdrawnStaysOut({ events }: FinishedThread): Generator<string> {
  const withdrawn = new Set<string>()
  for (const event of events) {
    if (event.type === 'message_unqueued') withdrawn.add(event.queueId)
    if (event.type === 'message_added' && withdrawn.has(event.queueId ?? ''))
      yield `${event.queueId} was withdrawn and taken all the same`
  }
}

/** The log says how a message was sent to a thread in a session. */
function* cutsAreKept({ events }: FinishedThread, policies: Policies): Generator<string> {
  let hasSession = false
  for (const event of events) {
    if (event.type === 'session_start') hasSession = true
    if (event.type === 'session_end') hasSession = false
    if (event.type !== 'message_queued') continue
    const wanted = policies.get(event.queueId)
    const cuts = wanted === 'cut' || wanted === 'restart' ? wanted : undefined
    if (event.ifBusy !== (hasSession ? cuts : undefined))
      yield `${event.queueId} was sent with ${wanted} and stored with ${event.ifBusy}`
  }
}

/**
 * A message that cuts is not read by the turn that it cuts, and no more than one write still starts in that
 * turn: the one that was about to start.
 */
function* cutsCut({ events }: FinishedThread): Generator<string> {
  const cutting = new Map<string, string>()
  let turnId: string | undefined
  let writes = 0
  for (const event of events) {
    if (event.type === 'turn_start') turnId = event.turnId
    if (event.type === 'turn_end') {
      turnId = undefined
      writes = 0
    }
    if (event.type === 'message_queued' && event.ifBusy && turnId !== undefined)
      cutting.set(event.queueId, turnId)
    if (event.type === 'message_unqueued') cutting.delete(event.queueId)
    const queueId = event.type === 'message_added' ? (event.queueId ?? '') : ''
    if (cutting.has(queueId)) {
      if (cutting.get(queueId) === turnId) yield `${queueId} was read by the turn that it cuts`
      cutting.delete(queueId)
    }
    if (event.type !== 'tool_execution_start' || !WRITES.has(event.toolName)) continue
    if (cutting.size > 0 && ++writes > 1) yield `${event.toolName} started in a turn that was cut`
  }
}

/** A restart drops everything that people said in the session and that was not answered. */
function* restartDrops({ events }: FinishedThread): Generator<string> {
  const people = new Set<string>()
  let said: string[] = []
  let isHandoff = false
  let isRestarted = false
  for (const event of events) {
    if (event.type === 'message_queued' && event.resumes && event.metadata?.['from'] !== 'parent')
      people.add(event.queueId)
    if (event.type === 'session_end') isHandoff = event.reason === 'handoff'
    if (event.type === 'session_start' && !isHandoff) said = []
    if (event.type === 'message_removed') said = said.filter((id) => id !== event.messageId)
    if (event.type === 'message_added' && people.has(event.queueId ?? '')) said.push(event.queueId!)
    if (event.type === 'turn_end') isRestarted = event.reason === 'restarted'
    if (event.type !== 'turn_cut' || !isRestarted) continue
    const left = said.filter((id) => !event.dropped?.includes(id))
    if (left.length > 0) yield `a restart left ${left.join()}`
    said = []
  }
}

/** What was dropped is in no later request to a model. */
function* droppedIsNotShown({ events }: FinishedThread): Generator<string> {
  const dropped = new Set<string>()
  const last = new Map<string, { readonly logId: string; readonly ids: readonly string[] }>()
  for (const event of events) {
    if (event.type === 'turn_cut') for (const id of event.dropped ?? []) dropped.add(id)
    if (event.type !== 'model_requested') continue
    const { logId, side, previous, adds } = event
    const before = last.get(side)
    const kept = previous && before?.logId === previous.logId ? before.ids : []
    const added = adds.map((one) => (typeof one === 'string' ? one : String(one['id'])))
    const ids = [...kept.slice(0, previous?.keeps ?? 0), ...added]
    last.set(side, { logId, ids })
    for (const id of ids) if (dropped.has(id)) yield `${id} was dropped and shown to a model`
  }
}

/**
 * A payment runs with exactly the arguments that a person was shown and approved, and once per approval; or while a
 * grant for payments is in force.
 */
function* whatRunsWasApproved({ events }: FinishedThread): Generator<string> {
  const asked = new Map<string, { readonly toolCallId: string; readonly args: string }>()
  const approved = new Map<string, string>()
  const grants = new Grants()
  for (const event of events) {
    grants.see(event)
    if (event.type === 'interrupt_opened' && event.interrupt.kind === 'approval') {
      const { id, toolCallId, request } = event.interrupt
      const { action } = request as { readonly action: { readonly args: JsonValue } }
      asked.set(id, { toolCallId, args: canonicalJson(action.args) })
    }
    if (event.type === 'interrupt_answered' && event.answer.type === 'approve') {
      const { toolCallId, args } = asked.get(event.interruptId) ?? {}
      if (toolCallId !== undefined) approved.set(toolCallId, args!)
    }
    if (event.type !== 'tool_execution_start' || event.toolName !== 'pay') continue
    const args = canonicalJson(event.arguments as JsonValue)
    if (grants.cover('pay', event.at)) continue
    if (approved.get(event.toolCallId) !== args) yield `pay ran with ${args}, which nobody approved`
  }
}

/** Planted bugs against these laws; see `plants.ts`. */
export const busyPlants: Readonly<Record<string, (store: Store) => Store>> = {
  /** Messages are taken without looking whether they were withdrawn meanwhile. */
  'blind-taking': (store) =>
    spoiling(store, ({ threads: [own] }) => {
      if (own?.append?.some((event) => event.type === 'message_added' && event.queueId))
        Object.assign(own, { expectSeq: undefined })
    }),

  /** A message that should cut the turn waits for its next step. */
  'forgotten-cut': (store) =>
    spoiling(store, ({ point, threads: [own] }) => {
      for (const event of point === 'send_message' ? (own?.append ?? []) : [])
        if (event.type === 'message_queued') Object.assign(event, { ifBusy: undefined })
    }),

  /** A restart forgets to drop the first message. */
  'kept-question': (store) =>
    spoiling(store, ({ threads: [own] }) => {
      for (const event of own?.append ?? [])
        if (event.type === 'turn_cut' && event.dropped)
          Object.assign(event, { dropped: event.dropped.slice(1) })
    }),

  /** A call is approved with changes, and runs with other arguments all the same. */
  'swapped-arguments': (store) =>
    spoiling(store, ({ threads: [own] }) => {
      for (const event of own?.append ?? [])
        if (event.type === 'tool_execution_start' && event.toolName === 'pay')
          Object.assign(event, { arguments: { ...(event.arguments as object), ref: 'other' } })
    }),

  /** The cut is committed, and a call of the turn starts after it. */
  'late-call': (store) => {
    const late = new Map<string, RuntimeEvent>()
    return spoiling(store, ({ threads: [own] }) => {
      for (const event of own?.append ?? []) {
        if (event.type === 'tool_execution_start' && WRITES.has(event.toolName))
          late.set(own!.id, event)
        const again = late.get(own!.id)
        if (event.type === 'turn_cut' && again && own?.append) {
          const place = own.append.indexOf(event)
          Object.assign(own, { append: own.append.toSpliced(place - 1, 0, again, again) })
          return
        }
      }
    })
  },
}
