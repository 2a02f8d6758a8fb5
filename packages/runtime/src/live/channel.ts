import type { RuntimeEvent, StoredEvent } from '../event.ts'
import { endsDraft, LiveDraft, type ShownEvent } from './live-draft.ts'

/** How many events of the log a watched thread keeps at hand. Who is further behind reads the store. */
const RECENT = 256

/** True for the beginning of something that may show what is not of the log. */
export function beginsToShow({ type }: RuntimeEvent): boolean {
  return type === 'step_start' || type === 'tool_execution_start'
}

/**
 * True for events that come only from the middle of a session that goes on: whoever waits for its end, for a
 * question or for rest need not look.
 */
function isUnderWay(events: readonly StoredEvent[]): boolean {
  return events.length > 0 && events.every(({ event }) => underWay.has(event.type))
}

const underWay: ReadonlySet<RuntimeEvent['type']> = new Set([
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

/** What goes on in one thread, for all its readers: they look when the bell rings, and take what they lack. */
export class Channel {
  /** Number of the last event that was published here. */
  seq = 0
  /** Number of the event that was published first. */
  firstSeq: number = Infinity
  /** Rises with every commit, also with one that appended nothing. */
  version = 0
  /** As `version`, without the commits that are only steps on the way. */
  turns = 0
  /** The last event published that ended a draft. */
  endedAt = 0
  isRemoved = false
  readonly draft: LiveDraft
  readonly #bells = new Set<() => void>()
  #recent: StoredEvent[] = []
  /** What may still show something: the step that speaks, and the calls that run. */
  readonly #sources = new Set<string>()

  constructor(maxDraftSize: number) {
    this.draft = new LiveDraft(maxDraftSize)
  }

  get readers(): number {
    return this.#bells.size
  }

  /** True when forgetting it loses nothing. */
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
    if (!isUnderWay(events)) this.turns++
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

  /** The events after a number, if they are at hand. */
  after(seq: number): readonly StoredEvent[] | undefined {
    const first = this.#recent[0]?.seq
    if (first === undefined || first > seq + 1) return undefined
    return this.#recent.slice(seq + 1 - first)
  }

  /** Commits of two writers may be told in the wrong order: then readers look into the store. */
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
