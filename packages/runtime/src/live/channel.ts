import type { RuntimeEvent, StoredEvent } from '../contract/event.ts'
import { endsDraft, LiveDraft, type ShownEvent } from './live-draft.ts'

/**
 * How many recent events of a watched thread stay in memory. Readers that are further behind read the store.
 */
const RECENT = 256

/** Whether deltas or progress, which are not in the log, may follow this event. */
export function beginsToShow({ type }: RuntimeEvent): boolean {
  return type === 'step_start' || type === 'tool_execution_start'
}

/**
 * Events that occur in the middle of a running session. A commit with only these events cannot end a session,
 * ask a person or park the thread, so callers that wait for such a change are not notified.
 */
const UNDER_WAY: ReadonlySet<RuntimeEvent['type']> = new Set([
  'step_start',
  'step_end',
  'model_requested',
  'model_answered',
  'inference_recorded',
  'message_added',
  'tool_execution_start',
  'tool_execution_end',
  'gate_decided',
  'evidence_added',
] as const)

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
  /** Like `version`, but not increased by commits from the middle of a running session (`UNDER_WAY`). */
  turns = 0
  /** Number of the last published event that ended a draft. */
  endedAt = 0
  isRemoved = false
  readonly draft: LiveDraft
  readonly #bells = new Set<() => void>()
  #recent: StoredEvent[] = []
  /**
   * The sources that may still emit deltas or progress: the running step (as '') and running calls (by id).
   */
  readonly #sources = new Set<string>()

  constructor(maxDraftSize: number) {
    this.draft = new LiveDraft(maxDraftSize)
  }

  get readers(): number {
    return this.#bells.size
  }

  /** Whether the channel can be dropped without losing anything. */
  get isIdle(): boolean {
    return this.readers === 0 && this.draft.isEmpty && this.#sources.size === 0
  }

  join(bell: () => void): void {
    this.#bells.add(bell)
  }

  leave(bell: () => void): void {
    this.#bells.delete(bell)
    if (this.readers === 0) this.#recent = []
  }

  publish(events: readonly StoredEvent[]): void {
    this.version++
    if (events.length === 0 || events.some(({ event }) => !UNDER_WAY.has(event.type))) this.turns++
    for (const stored of events) this.#add(stored)
    this.ring()
  }

  show(events: readonly ShownEvent[]): void {
    for (const event of events) {
      if (event.type === 'custom_event' && this.readers === 0) continue
      if (event.type === 'step_reset') this.draft.restart()
      this.draft.add(event)
    }
    this.ring()
  }

  ring(): void {
    for (const bell of this.#bells) bell()
  }

  /** Returns the events after a number; undefined when they are not all in memory. */
  after(seq: number): readonly StoredEvent[] | undefined {
    const first = this.#recent[0]?.seq
    if (first === undefined || first > seq + 1) return undefined
    return this.#recent.slice(seq + 1 - first)
  }

  /**
   * Adds a published event. Two writers may publish out of order; then `#recent` is cleared because of the
   * gap, and readers read the store.
   */
  #add(stored: StoredEvent): void {
    const { seq, event } = stored
    if (this.firstSeq === Infinity) this.firstSeq = seq
    this.#noteSource(event)
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

  #noteSource(event: RuntimeEvent): void {
    if (event.type === 'tool_execution_start') this.#sources.add(event.toolCallId)
    else if (event.type === 'tool_execution_end') this.#sources.delete(event.toolCallId)
    else if (endsDraft(event)) this.#sources.clear()
    if (event.type === 'step_start') this.#sources.add('')
  }
}

/** A signal from one writer to one waiting reader. A ring while nobody waits is remembered. */
export class Bell {
  #hasRung = false
  #listener: (() => void) | undefined

  readonly ring = (): void => {
    this.#hasRung = true
    this.#listener?.()
    this.#listener = undefined
  }

  /**
   * Forgets earlier rings. Call it before checking for news; otherwise a ring during the check would be lost.
   */
  mute(): void {
    this.#hasRung = false
  }

  rung(): Promise<void> {
    if (this.#hasRung) return Promise.resolve()
    return new Promise((resolve) => {
      this.#listener = resolve
    })
  }
}

/**
 * Lets a loop wait for one promise at a time until a signal aborts; closing the gate ends the current wait.
 * It adds only one listener to the signal, however often the loop waits.
 */
export class AbortGate {
  #isClosed = false
  #release: (() => void) | undefined
  readonly #signal: AbortSignal | undefined
  readonly #close = (): void => this.close()

  constructor(signal?: AbortSignal) {
    this.#signal = signal
    if (signal?.aborted) this.#isClosed = true
    else signal?.addEventListener('abort', this.#close, { once: true })
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** Resolves to the value of the promise, or to undefined once the gate is closed. */
  through<T>(promise: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      promise.then(resolve, reject)
      if (this.#isClosed) return resolve(undefined)
      this.#release = () => resolve(undefined)
    })
  }

  close(): void {
    this.#isClosed = true
    this.#signal?.removeEventListener('abort', this.#close)
    this.#release?.()
    this.#release = undefined
  }
}
