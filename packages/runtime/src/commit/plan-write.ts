import type { DrainContext } from '../context/drain-context.ts'
import type { Write } from '../context/write.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { EventOf } from '../contract/event-of.ts'
import { findCall } from '../state/calls.ts'
import { envSet } from '../thread/env.ts'
import { userChanges } from '../thread/user-values.ts'
import type { PlannedCommit } from './held-writes.ts'
import type { KernelState } from '../state/kernel-state.ts'
import { asksPeople, waitingAfter } from '../state/questions.ts'
import type { Commit, ThreadChange } from '../store/commit.ts'

/** What a planner needs of the thread that is written. */
export type PlannedThread = Pick<
  DrainContext,
  'environment' | 'state' | 'head' | 'epoch' | 'trace' | 'at' | 'redactor'
> & {
  /** Events that the runtime puts before those of the write, e.g. that the thread works again. */
  eventsBefore(point: string): readonly RuntimeEvent[]
}

/** How a write is planned. */
interface Planning {
  readonly point: string
  /** Whether the store must refuse the commit if the log has got other events. */
  readonly isGuarded: boolean
  /** Whether the store knows already, or will know with the held writes, that the thread is due. */
  readonly isDue: boolean
}

/** Makes commits (transactions of the store) of the writes to one thread. */
export class WritePlanner {
  readonly #thread: PlannedThread
  /** The time of the last planned event (ISO 8601). */
  #lastAt = ''

  constructor(thread: PlannedThread) {
    this.#thread = thread
  }

  /** Builds the commit of a write: without secrets, with the times of its events in order. */
  plan(write: Write, { point, isGuarded, isDue }: Planning): PlannedCommit {
    const { environment, head, epoch, state, trace } = this.#thread
    const { clock } = environment
    const { governance, kind } = write
    const isProgress = kind === 'outcome'
    const before = this.#thread.eventsBefore(point)
    const own = [...before, ...(write.events ?? []), ...(governance?.events ?? [])]
    const plain = {
      events: this.#safeEvents(head.id, own).map(asStored),
      others: (write.others ?? []).map(({ append, ...change }) => ({
        ...this.#redacted(change),
        append: append && this.#safeEvents(change.id, append),
      })),
    }
    const traced = trace?.stamp(plain) ?? plain
    const { others } = traced
    const events = this.#inOrder(traced.events)
    let { wake } = write
    // While a thread is worked on, it is marked as due in the store, so that after a crash the next
    // start of the runtime finds the thread even if nothing else asks for work on it.
    const marksDue = !wake && !isDue && (head.wakeAt ?? Infinity) > clock.now()
    if (marksDue) wake = { by: clock.now() }
    // A lifecycle is set only by a write that knows whether the thread was terminated.
    const isFixed =
      write.requiresUnchangedLog || write.joinsNext || isGuarded || setsLifecycle(write)
    const change: ThreadChange = {
      id: head.id,
      fence: epoch,
      append: events,
      head: {
        lifecycle: before.length > 0 ? 'running' : undefined,
        // Open questions are counted immediately: a person can answer while other calls of the message still run.
        waiting: asksPeople(events) ? waitingAfter(state, events, clock.now()) : undefined,
        ...write.head,
        ...(state.terminated && setsLifecycle(write) && { lifecycle: 'terminated' }),
        attempts: isProgress ? 0 : write.head?.attempts,
      },
      lease: write.releases ? 'released' : isProgress ? 'cleared' : undefined,
      wake,
      expectSeq: isFixed ? state.seq : undefined,
      mustBeLive: needsLife(write) || undefined,
    }
    const commit: Commit = {
      point,
      isLazy: kind === 'begin',
      threads: [change, ...others],
      blobs: [...(write.blobs ?? []), ...(governance?.blobs ?? [])],
      audit: governance?.audit,
      spent: governance?.spent,
      userValues: write.values && this.#redacted(userChanges(write.values, this.#thread.at())),
    }
    return { commit, events, marksDue, isProgress }
  }

  /**
   * Returns the events with times that never go back. Events that are written together were made at different moments:
   * the time of an answer is that of its last part, and its `model_answered` may have been made later.
   */
  #inOrder(events: readonly RuntimeEvent[]): readonly RuntimeEvent[] {
    let last = this.#lastAt
    const inOrder = events.map((event) => {
      if (event.at < last) return { ...event, at: last }
      last = event.at
      return event
    })
    this.#lastAt = last
    return inOrder
  }

  /**
   * Removes secrets from the events of a thread. A variable that contains a secret is encrypted instead, because
   * tools need its value.
   */
  #safeEvents(threadId: string, events: readonly RuntimeEvent[]): readonly RuntimeEvent[] {
    const safe = this.#redacted(events)
    if (safe === events) return events
    const { vault } = this.#thread.environment
    return events.map((event, place) =>
      event.type === 'env_set' && safe[place] !== event
        ? envSet({ ...event, valueType: 'secret', threadId, vault })
        : safe[place]!,
    )
  }

  #redacted<T>(value: T): T {
    return this.#thread.redactor()?.json(value) ?? value
  }
}

/** Removes fields that are undefined, as a store does, so that the state is computed from the same event as later. */
function asStored<T extends object>(event: T): T {
  // Every event of every turn comes here, so no lists of its members are made.
  for (const name in event) if (event[name] === undefined) return withoutUndefined(event)
  return event
}

function withoutUndefined<T extends object>(event: T): T {
  const copy: Partial<T> = {}
  for (const name in event) if (event[name] !== undefined) copy[name] = event[name]
  return copy as T // only undefined members are left out
}

/** Whether a write begins something. A thread that was terminated refuses it: it only records how its work ends. */
export function needsLife({ events = [], others = [] }: Write): boolean {
  return events.some((event) => workOf(event) === 'begins') || others.some(({ create }) => create)
}

/** Returns the part of a write that records the end of calls and effects; undefined if there is none. */
export function endsOnly({ events = [], onLost }: Write): Write | undefined {
  const ends = events.filter((event) => workOf(event) === 'ends')
  return ends.length === 0 ? undefined : { events: ends, onLost, kind: 'outcome' }
}

/** What an event says about work: that some begins, that a call or an effect has ended, or neither. */
function workOf(event: RuntimeEvent): 'begins' | 'ends' | undefined {
  switch (event.type) {
    case 'message_added':
    case 'message_queued':
    case 'session_start':
    case 'turn_start':
    case 'step_start':
    case 'tool_execution_start':
    case 'effect_started':
      return 'begins'
    case 'tool_execution_end':
    case 'effect_ended':
      return 'ends'
    default:
      event satisfies NeitherBeginningNorEnd
      return undefined
  }
}

export function setsLifecycle({ head }: Write): boolean {
  return head?.lifecycle !== undefined
}

/**
 * Leaves out questions whether a call took effect that has reported its result meanwhile: a late result is appended
 * without the drain, perhaps just before the question.
 */
export function withoutAnswered(state: KernelState, write: Write): Write {
  const { events = [], head } = write
  const rest = events.filter(
    (event) =>
      event.type !== 'interrupt_opened' ||
      event.interrupt.kind !== 'in_doubt' ||
      !isAnsweredLate(state, event),
  )
  const answeredCount = events.length - rest.length
  if (answeredCount === 0) return write
  const waiting =
    head?.waiting === undefined ? undefined : Math.max(head.waiting - answeredCount, 0)
  return { ...write, events: rest, head: { ...head, waiting } }
}

function isAnsweredLate(
  state: KernelState,
  { effectId, interrupt: { toolCallId } }: Extract<RuntimeEvent, { type: 'interrupt_opened' }>,
): boolean {
  const subject =
    effectId === undefined ? findCall(state, toolCallId)?.call : state.effects.get(effectId)
  return subject?.late !== undefined
}

/** Events that begin no work and end none. */
// prettier-ignore
type NeitherBeginningNorEnd = EventOf<
  'thread_created' | 'thread_updated' | 'thread_terminated' | 'thread_erased' | 'status_changed' |
  'session_end' | 'session_failing' | 'write_undone' | 'undo_decided' | 'message_unqueued' |
  'message_updated' | 'call_changed' | 'message_removed' | 'delivery_changed' | 'turn_end' |
  'step_reset' | 'step_failed' | 'text_delta' | 'late_result' | 'call_reset' |
  'interrupt_opened' | 'interrupt_answered' | 'subagent_created' | 'subagent_updated' |
  'subagent_ended' | 'agent_handoff' | 'context_compacted' | 'gate_decided' | 'error_raised' |
  'model_requested' | 'model_answered' | 'inference_recorded' | 'usage_recorded' |
  'agent_registered' | 'step_end' | 'reasoning_delta' | 'tool_call_delta' |
  'tool_execution_progress' | 'tool_call_hidden' | 'file_written' | 'file_removed' |
  'source_added' | 'evidence_added' | 'custom_event' | 'session_stop_requested' |
  'immediate_done' | 'stop_requested' | 'turn_cut' | 'resume_requested' | 'value_set' |
  'env_set' | 'effect_scheduled' | 'variables_requested' | 'variables_provided' |
  'variables_settled' | 'grant_made' | 'grant_revoked'
>
