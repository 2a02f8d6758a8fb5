import type {
  MessageQueued,
  RuntimeEvent,
  RuntimeMessageAdded,
  StoredEvent,
} from '../contract/event.ts'
import type { EventOf } from '../contract/event-of.ts'
import { doPart } from '../store/next-turn.ts'
import type { Store } from '../store/store.ts'
import {
  type RestoredSnapshot,
  restoreSnapshot,
  type SavedSnapshot,
  takeSnapshot,
} from './snapshot.ts'
import { foldSession } from './fold-session.ts'
import { foldContents } from './fold-contents.ts'
import { foldWork } from './fold-work.ts'
import { addCost, addTokens } from './usage-sums.ts'
import {
  emptyKernelState,
  isAwaited,
  isFromPerson,
  NOTHING_SPENT,
  type Entry,
  type KernelState,
} from './kernel-state.ts'
import { messageFromJSON } from '@skein/ai'
import { newCall } from './calls.ts'
import { checkVersion } from '../store/upcast.ts'
import { foldCall } from './fold-call.ts'

/** Computes the state of a thread from its log. Pure: the same events give the same state in any process. */
export function foldKernel(events: Iterable<StoredEvent>): KernelState {
  const fold = new KernelFold()
  for (const stored of events) fold.push(stored)
  return fold.state
}

/**
 * A thread state to which further events can be added. Events must come in order; events that the state already
 * contains are skipped.
 */
export class KernelFold {
  state: KernelState = emptyKernelState()
  /** How many of the last events are not in the log yet (see `Write.joinsNext`). */
  ahead = 0
  /** The stored snapshot with which this state began, or that was last taken of it. */
  saved: SavedSnapshot | undefined
  /** The index of the first entry (message) that may differ from the snapshot `saved`. */
  changedFrom = 0

  push({ seq, event }: StoredEvent): void {
    if (seq <= this.state.seq) return
    if (event.type === 'thread_created') checkVersion(event)
    this.state.seq = seq
    if (this.changedFrom > 0)
      this.changedFrom = Math.min(this.changedFrom, changedBy(this.state, event))
    apply(this.state, event)
  }

  /** Continues from a snapshot; the state must be empty until then. */
  restore({ state, saved }: RestoredSnapshot): void {
    this.state = state
    this.saved = saved
    this.changedFrom = state.entries.length
  }
}

/** The part of a store from which the events of a log and the snapshots of its state are read. */
export type FoldSource = Pick<Store, 'events' | 'snapshots'>

/** How many events are read in one request. */
const PAGE = 1000

/** A log of a thread. */
export interface LogName {
  readonly threadId: string
  readonly logId: number
}

/** Loads the snapshot of a log into an empty state, if there is one that can be read. */
export async function restoreFold(
  fold: KernelFold,
  { snapshots }: FoldSource,
  { threadId, logId }: LogName,
  mayRestore: () => boolean = () => true,
): Promise<void> {
  if (!snapshots || fold.state.seq > 0) return
  const parts = await snapshots.read(threadId, logId)
  if (parts.size === 0 || fold.state.seq > 0 || !mayRestore()) return
  const snapshot = await doPart(() => restoreSnapshot(parts))
  if (fold.state.seq > 0 || !mayRestore()) return
  if (snapshot?.state.threadId === threadId) fold.restore(snapshot)
}

/** Reads the events of a log that a state does not contain yet. An empty state begins with the snapshot. */
export async function catchUpFold(
  fold: KernelFold,
  store: FoldSource,
  log: LogName,
): Promise<void> {
  await restoreFold(fold, store, log)
  for (;;) {
    const page = await store.events(log.threadId, { after: fold.state.seq, limit: PAGE })
    for (const stored of page) fold.push(stored)
    if (page.length < PAGE) return
  }
}

/**
 * Stores a snapshot of a thread state if its log has grown enough since the last one. Nothing waits for it: the state
 * is encoded immediately, and a snapshot that cannot be written is taken again later, as a whole.
 */
export function saveFold(fold: KernelFold, { snapshots }: FoldSource, log: LogName): void {
  if (!snapshots || fold.ahead > 0) return
  const { every = EVENTS_PER_SNAPSHOT } = snapshots
  // The first snapshot waits for five times as many events: shorter logs are read so fast that they need none.
  const grown = fold.saved ? fold.state.seq - fold.saved.seq : fold.state.seq / 5
  if (grown < every) return
  const snapshot = takeSnapshot(fold)
  if (!snapshot) return
  fold.saved = snapshot.saved
  fold.changedFrom = fold.state.entries.length
  snapshots.save(log.threadId, log.logId, snapshot.parts).catch(() => {
    fold.saved = undefined
    fold.changedFrom = 0
  })
}

/** See `Snapshots.every`. */
const EVENTS_PER_SNAPSHOT = 1000

function apply(state: KernelState, event: RuntimeEvent): void {
  switch (event.type) {
    case 'thread_created':
      state.threadId = event.threadId
      state.createdAt = event.at
      state.agent = event.agent
      state.title = event.title
      state.depth = event.depth
      state.parent = event.parent
      state.arguments = event.arguments ?? {}
      state.budget = event.budget
      state.metadata = event.metadata ?? {}
      return
    case 'thread_updated':
      state.title = event.title ?? state.title
      state.metadata = { ...state.metadata, ...event.metadata }
      return
    case 'message_queued':
      if (state.queuedIds.has(event.queueId)) return
      state.queuedIds.set(event.queueId, state.seq)
      state.queue.push(event)
      // The parent's commit that sends a message also marks this child as running in the parent's list.
      if (event.metadata?.['from'] === 'parent') state.isToldAwaiting = false
      return
    case 'message_unqueued':
      take(state, event.queueId)
      if (!state.session && state.stop === 'requested' && !isAwaited(state)) state.stop = 'stopped'
      return
    case 'message_added':
      return addMessage(state, event)
    case 'message_updated': {
      const entry = entryOf(state, event.messageId)
      if (!entry) return
      entry.message = messageFromJSON(event.message)
      entry.editedSeq = state.editSeq = state.shownSeq = state.seq
      return
    }
    case 'message_removed': {
      const entry = entryOf(state, event.messageId)
      if (!entry) return
      entry.isRemoved = true
      entry.editedSeq = state.editSeq = state.shownSeq = state.seq
      return
    }
    case 'session_start':
    case 'session_end':
    case 'session_failing':
    case 'session_stop_requested':
    case 'delivery_changed':
    case 'turn_start':
    case 'turn_end':
    case 'step_start':
    case 'step_end':
    case 'step_failed':
    case 'agent_handoff':
    case 'immediate_done':
    case 'stop_requested':
    case 'turn_cut':
    case 'resume_requested':
    case 'thread_terminated':
    case 'context_compacted':
    case 'inference_recorded':
      return foldSession(state, event)
    case 'tool_execution_start':
    case 'tool_execution_end':
    case 'late_result':
    case 'tool_call_hidden':
    case 'call_reset':
    case 'call_changed':
    case 'interrupt_opened':
    case 'interrupt_answered':
    case 'write_undone':
    case 'undo_decided':
      return foldCall(state, event)
    case 'error_raised':
      // The commit that wrote this event answered the calls of the parent that wait for queued messages, so a
      // later session must not answer them again.
      if (event.code === 'DRAIN_FAILED' && !state.session)
        state.queue.forEach(({ parentInterruptId: _answered, ...rest }, place) => {
          state.queue[place] = rest
        })
      return
    case 'thread_erased':
      state.isErased = true
      return
    case 'subagent_created':
    case 'subagent_updated':
    case 'subagent_ended':
    case 'file_written':
    case 'file_removed':
    case 'value_set':
    case 'env_set':
    case 'gate_decided':
    case 'status_changed':
      return foldContents(state, event)
    case 'effect_scheduled':
    case 'effect_started':
    case 'effect_ended':
    case 'variables_requested':
    case 'variables_provided':
    case 'grant_made':
    case 'grant_revoked':
    case 'variables_settled':
    case 'model_answered':
    case 'model_requested':
    case 'usage_recorded':
      return foldWork(state, event)
    default:
      event satisfies Unfolded
  }
}

function take({ queue }: KernelState, queueId: string): MessageQueued | undefined {
  const place = queue.findIndex((queued) => queued.queueId === queueId)
  return place >= 0 ? queue.splice(place, 1)[0] : undefined
}

function takeNews({ news }: KernelState, queueId: string | undefined): void {
  const place = news.findIndex((one) => one.queueId === queueId)
  if (place >= 0) news.splice(place, 1)
}

/** Adds a message to the history. A message of the running step becomes that step's answer. */
function addMessage(state: KernelState, event: RuntimeMessageAdded): void {
  const { queueId, usage, costUsd, metadata } = event
  // If a call of the parent waits for this message, that call now waits for the end of the session.
  const request = queueId === undefined ? undefined : take(state, queueId)
  takeNews(state, queueId)
  const waiter = request?.parentInterruptId
  if (waiter !== undefined) state.session?.waiters.push(waiter)
  if (request?.callers && state.session?.callers.length === 0)
    state.session.callers = request.callers
  if (request && isFromPerson(request)) forgetHandoffs(state)
  const message = messageFromJSON(event.message)
  const calls = message.type === 'assistant' ? (message.toolCalls ?? []) : []
  const place = state.entries.length
  state.places.set(message.id, place)
  for (const { toolCallId } of calls) state.callPlaces.set(toolCallId, place)
  state.entries.push({
    message,
    side: event.side,
    at: event.at,
    turnId: event.turnId,
    stepId: event.stepId,
    agent: event.agentId,
    isSilent: event.isSilent === true,
    attachments: event.attachments ?? [],
    files: (event.attachments ?? []).flatMap((path) => state.files.get(path) ?? []),
    subagentId: event.subagentId,
    metadata,
    calls: calls.map(newCall),
    results: undefined,
    isRemoved: false,
    dropped: undefined,
    editedSeq: 0,
    delivery: event.delivery,
    refusal: undefined,
  })
  if (event.delivery === 'pending') state.session?.pending.add(message.id)
  if (state.usage.startedAt === 0) state.usage.startedAt = Date.parse(event.at)
  if (usage) {
    addTokens(state.usage, usage)
    addCost(state.usage, costUsd)
  }
  if (metadata?.['kind'] === 'registry' && message.type === 'user')
    state.registryText[metadata['for'] === 'b' ? 'b' : 'a'] = message.text
  const { session } = state
  // A note to the side of the conversation whose turn it is (e.g. its answer was refused) ends the run of its
  // strategy: the next run starts with the note.
  const isNote = metadata?.['for'] !== undefined && metadata['kind'] !== 'registry'
  if (isNote && session?.turn) session.turn.inferences = []
  const step = session?.turn?.step
  if (!session || !step || step.id !== event.stepId) return
  step.entry = place
  step.retry = undefined
  session.steps[event.side]++
}

/** When a person speaks, the handoffs, turns and steps of earlier agents no longer count against the limits. */
function forgetHandoffs({ session }: KernelState): void {
  if (!session || session.before.handoffs === 0) return
  session.before = NOTHING_SPENT
  session.sameErrors = 0
  session.lastError = undefined
}

function entryOf(state: KernelState, messageId: string): Entry | undefined {
  const place = state.places.get(messageId)
  return place === undefined ? undefined : state.entries[place]
}

/**
 * Returns the index of the first entry that an event may have changed. An event that changes an entry names its
 * message or one of its calls.
 */
export function changedBy(
  { entries, places, callPlaces }: KernelState,
  event: RuntimeEvent,
): number {
  const names = event as {
    readonly messageId?: string
    readonly toolCallId?: string
    readonly interrupt?: { readonly toolCallId: string }
    readonly dropped?: readonly string[]
    readonly messageIds?: readonly string[]
  }
  const {
    messageId = '',
    toolCallId = names.interrupt?.toolCallId ?? '',
    dropped = [],
    messageIds = [],
  } = names
  const indexes = [places.get(messageId), callPlaces.get(toolCallId)]
  for (const id of [...dropped, ...messageIds]) indexes.push(places.get(id))
  return Math.min(entries.length, ...indexes.map((place) => place ?? Infinity))
}

/** Events that change nothing in the state. */
// prettier-ignore
type Unfolded = EventOf<
  'step_reset' | 'text_delta' | 'agent_registered' | 'reasoning_delta' | 'tool_call_delta' |
  'tool_execution_progress' | 'source_added' | 'evidence_added' | 'custom_event'
>
