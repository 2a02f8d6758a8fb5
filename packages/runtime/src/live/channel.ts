import type { RuntimeEvent, StoredEvent } from '../contract/event.ts'
import type { EventOf } from '../contract/event-of.ts'
import { type DraftPart, endsDraft, LiveDraft, type ShownEvent } from './live-draft.ts'

/**
 * How many recent events of a thread with readers stay in memory. A reader that is further behind reads the store.
 */
const RECENT = 256

/** Whether deltas of text or progress of a tool, which are never stored, may follow this event. */
export function beginsToShow({ type }: RuntimeEvent): boolean {
  return type === 'step_start' || type === 'tool_execution_start'
}

/**
 * Whether an event occurs in the middle of a running session. A commit with only such events cannot end a
 * session, ask a person or make the thread wait, so callers that wait for such a change are not notified.
 */
function isUnderWay(event: RuntimeEvent): boolean {
  switch (event.type) {
    case 'step_start':
    case 'step_end':
    case 'model_requested':
    case 'model_answered':
    case 'inference_recorded':
    case 'message_added':
    case 'tool_execution_start':
    case 'tool_execution_end':
    case 'gate_decided':
    case 'evidence_added':
      return true
    default:
      event satisfies MayEndWait
      return false
  }
}

/** What the node that works on a thread sends to other nodes where the thread is read. */
export interface LiveFrame extends DraftPart {
  /** The number of the last event of the log that the sender has published. */
  readonly seq: number
  /**
   * The number of the event after which the draft began; no event up to `seq` has ended it.
   */
  readonly base: number
  /** Counts commits like `Channel.version`. A frame may differ from the previous frame in this number alone. */
  readonly version: number
}

/**
 * The live state of one thread, shared by all its readers. It only notifies readers that something is new;
 * each reader then fetches the events it is missing, from here or from the store.
 */
export class Channel {
  /** Number of the last event that was published here. */
  seq = 0
  /** Number of the first event that was published here. */
  firstSeq: number = Infinity
  /** Increases with every commit, even with one that appends no event. */
  version = 0
  /** Like `version`, but not increased by commits from the middle of a running session (`isUnderWay`). */
  turns = 0
  /** Number of the last published event that ended a draft. */
  endedAt = 0
  isRemoved = false
  /** How many readers want deltas. Other nodes send the text of a running step here only if this is above 0. */
  deltaReaders = 0
  /** The log and the state of the thread when they were last read from the store for readers of this process. */
  seen: { readonly logId: number; readonly state: string } | undefined
  readonly draft: LiveDraft
  readonly #listeners = new Set<() => void>()
  /** Which events were last read from the store because other nodes wrote them: after number `from`, up to `to`. */
  #pulled = { from: 0, to: 0 }
  /** Whether the draft is a copy of that of another node. */
  #isReplica = false
  #recent: StoredEvent[] = []
  /**
   * The sources that may still emit deltas or progress: the running step (as '') and running calls (by id).
   */
  readonly #sources = new Set<string>()

  constructor(maxDraftSize: number) {
    this.draft = new LiveDraft(maxDraftSize)
  }

  get readers(): number {
    return this.#listeners.size
  }

  /** Whether the channel can be dropped: it has no readers, and no text that is not in the log. */
  get isIdle(): boolean {
    return this.readers === 0 && this.isQuiet
  }

  /** Whether this process has no streamed text of its own and expects no further deltas or progress. */
  get isQuiet(): boolean {
    return (this.draft.isEmpty || this.#isReplica) && this.#sources.size === 0
  }

  subscribe(listener: () => void, wantsDeltas = false): void {
    this.#listeners.add(listener)
    if (wantsDeltas) this.deltaReaders++
  }

  unsubscribe(listener: () => void, wantsDeltas = false): void {
    this.#listeners.delete(listener)
    if (wantsDeltas) this.deltaReaders--
    if (this.readers === 0) this.#recent = []
  }

  /** Adds events of the log. `isOwn` says whether this process wrote them. */
  publish(events: readonly StoredEvent[], isOwn = true): void {
    this.version++
    if (events.length === 0 || events.some(({ event }) => !isUnderWay(event))) this.turns++
    for (const stored of events) this.#add(stored, isOwn)
    this.notify()
  }

  /**
   * Publishes events that other nodes wrote and that were read from the store in order. Returns the
   * events that are new here: this process may have published some of them meanwhile.
   */
  pull(events: readonly StoredEvent[]): readonly StoredEvent[] {
    const fresh = events.filter(({ seq }) => seq > this.seq)
    const from = this.seq
    this.publish(fresh, false)
    if (this.#pulled.to !== from) this.#pulled = { from, to: from }
    this.#pulled.to = this.seq
    return fresh
  }

  /** Leaves out the events that `pull` has published already. */
  notPulled(events: readonly StoredEvent[]): readonly StoredEvent[] {
    const { from, to } = this.#pulled
    return events.filter(({ seq }) => seq <= from || seq > to)
  }

  /** Makes readers read the store again, because other nodes have written events up to this number. */
  touch(seq: number): void {
    if (this.firstSeq === Infinity) this.firstSeq = seq + 1
    this.seq = Math.max(this.seq, seq)
    this.#recent = []
    this.version++
    this.turns++
    this.notify()
  }

  /** Returns what has changed since the last frame that was sent; undefined if nothing has. */
  frame(last?: LiveFrame): LiveFrame | undefined {
    const { seq, version } = this
    const base = Math.max(this.endedAt, Math.min(this.firstSeq - 1, seq))
    const after = last?.base === base ? last.count : 0
    const part = this.draft.part(after)
    if (last && last.version === version && part.runs.length === 0) return undefined
    return { seq, base, version, ...part }
  }

  /**
   * Adds a frame from the node that works on the thread. The events up to the frame's `seq` must have been published.
   * Returns false if pieces of the streamed text are missing. A frame of a text that was stored meanwhile is ignored.
   */
  replicate(frame: LiveFrame): boolean {
    if (this.endedAt > frame.base) return true
    if (this.firstSeq > frame.base + 1) this.firstSeq = frame.base + 1
    this.#isReplica = true
    const isJoined = this.draft.join(frame)
    this.notify()
    return isJoined
  }

  show(events: readonly ShownEvent[]): void {
    for (const event of events) {
      if (event.type === 'custom_event' && this.readers === 0) continue
      if (event.type === 'step_reset') this.draft.restart()
      this.draft.add(event)
    }
    this.notify()
  }

  notify(): void {
    for (const listener of this.#listeners) listener()
  }

  /** Returns the events after the given number; undefined if some of them are no longer in memory. */
  after(seq: number): readonly StoredEvent[] | undefined {
    const first = this.#recent[0]?.seq
    if (first === undefined || first > seq + 1) return undefined
    return this.#recent.slice(seq + 1 - first)
  }

  /**
   * Adds a published event. If two writers publish out of order, there is a gap: `#recent` is cleared,
   * and readers read the store.
   */
  #add(stored: StoredEvent, isOwn: boolean): void {
    const { seq, event } = stored
    if (this.firstSeq === Infinity) this.firstSeq = seq
    this.#noteSource(event, isOwn)
    if (endsDraft(event)) {
      this.endedAt = Math.max(this.endedAt, seq)
      this.draft.end(event)
    }
    if (seq <= this.seq) return
    if (seq !== this.seq + 1) this.#recent = []
    this.seq = seq
    if (this.readers === 0) return
    this.#recent.push(stored)
    if (this.#recent.length > 2 * RECENT) this.#recent = this.#recent.slice(-RECENT)
  }

  #noteSource(event: RuntimeEvent, isOwn: boolean): void {
    if (isOwn && beginsToShow(event)) this.#isReplica = false
    if (isOwn && event.type === 'tool_execution_start') this.#sources.add(event.toolCallId)
    else if (event.type === 'tool_execution_end') this.#sources.delete(event.toolCallId)
    else if (endsDraft(event)) this.#sources.clear()
    if (isOwn && event.type === 'step_start') this.#sources.add('')
  }
}

/**
 * A signal from one writer to one waiting reader. If it is notified while the reader does not wait, the next
 * wait ends immediately.
 */
export class NewsSignal {
  #isNotified = false
  #listener: (() => void) | undefined

  readonly notify = (): void => {
    this.#isNotified = true
    this.#listener?.()
    this.#listener = undefined
  }

  /**
   * Forgets earlier notifications. Call it before checking for news: if it were called afterwards, a notification
   * during the check would be lost.
   */
  reset(): void {
    this.#isNotified = false
  }

  notified(): Promise<void> {
    if (this.#isNotified) return Promise.resolve()
    return new Promise((resolve) => {
      this.#listener = resolve
    })
  }
}

/** Events that may end a wait. */
// prettier-ignore
type MayEndWait = EventOf<
  'thread_created' | 'thread_updated' | 'thread_terminated' | 'thread_erased' | 'status_changed' |
  'session_start' | 'session_end' | 'session_failing' | 'write_undone' | 'undo_decided' |
  'message_queued' | 'message_unqueued' | 'message_updated' | 'call_changed' | 'message_removed' |
  'delivery_changed' | 'turn_start' | 'turn_end' | 'step_reset' | 'step_failed' | 'text_delta' |
  'late_result' | 'call_reset' | 'interrupt_opened' | 'interrupt_answered' | 'subagent_created' |
  'subagent_updated' | 'subagent_ended' | 'agent_handoff' | 'context_compacted' | 'error_raised' |
  'usage_recorded' | 'agent_registered' | 'reasoning_delta' | 'tool_call_delta' |
  'tool_execution_progress' | 'tool_call_hidden' | 'file_written' | 'file_removed' |
  'source_added' | 'custom_event' | 'session_stop_requested' | 'immediate_done' |
  'stop_requested' | 'turn_cut' | 'resume_requested' | 'value_set' | 'env_set' |
  'effect_scheduled' | 'effect_started' | 'effect_ended' | 'variables_requested' |
  'variables_provided' | 'variables_settled' | 'grant_made' | 'grant_revoked'
>
