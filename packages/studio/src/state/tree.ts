import { type ThreadView, ViewFold, type ViewItem } from '@skein/runtime/view'
import type { NumberedEvent, ThreadInfo } from '@skein/runtime'
import { type Facts, FactsFold } from './facts.ts'

type AnyEvent = NumberedEvent['event']

/** An event of the log with its number. */
export interface LoggedEvent {
  readonly seq: number
  readonly event: AnyEvent
  /** Whether a long tool result was cut; `event` then has only its beginning, the server has all of it. */
  readonly isCut?: boolean
}

/** One thread as the page knows it. */
export interface ShownThread {
  readonly threadId: string
  readonly view: ThreadView
  readonly facts: Facts
  /** The stored events. The array is not replaced but grows; `view.seq` is the last number that this state includes. */
  readonly events: readonly LoggedEvent[]
  /** The number of earlier events of the thread that were not loaded. */
  readonly earlier: number
  /** Whether this is an earlier state of the thread, on which no actions are possible. */
  readonly isPast?: boolean
}

/** A thread with its descendants, as far as they were loaded. */
export interface TreeState {
  readonly rootId: string
  /** The threads whose events were read. */
  readonly threads: ReadonlyMap<string, ShownThread>
  /** The descendants as the list of threads shows them; empty until that list was loaded. */
  readonly below: ReadonlyMap<string, ThreadInfo>
  /** Whether all earlier events of the thread itself are loaded, so that any further event is new. */
  readonly isLoaded: boolean
  /** Whether the events of all descendants are loaded too. */
  readonly isWhole: boolean
  /** Why the thread cannot be read. */
  readonly error?: unknown
  readonly read: TreeReader
}

/** Loads parts of a tree that are not loaded automatically. */
export interface TreeReader {
  /** Reads one descendant, because it is opened. */
  readonly thread: (threadId: string) => void
  /** Loads all descendants, because the timeline or an earlier state is shown. */
  readonly all: () => void
  /** Loads events before those that are shown. */
  readonly earlier: () => void
}

/**
 * Computes the state of one thread from its events. For a long thread, first a state is computed from
 * the last events alone; when the earlier events are loaded, the state is computed again from all.
 */
export class LogFold {
  readonly threadId: string
  #events: LoggedEvent[] = []
  /** How many events of the thread before these were not loaded. */
  #earlier = 0
  /** What the model has streamed since the last stored message; it is not in the log. */
  #deltas: AnyEvent[] = []
  #view = new ViewFold()
  #facts = new FactsFold()
  #state: ShownThread | undefined
  #last: ThreadView | undefined
  /** What the list of threads says about this thread; used while only the end of the log is loaded. */
  readonly #info: ThreadInfo | undefined

  constructor(threadId: string, info?: ThreadInfo) {
    this.threadId = threadId
    this.#info = info
  }

  /** Begins with the end of a log. */
  begin(events: readonly LoggedEvent[]): void {
    this.#earlier = (events[0]?.seq ?? 1) - 1
    for (const entry of events) this.#store(entry)
  }

  /** Adds an event of the stream. */
  push(id: string, event: AnyEvent): void {
    const seq = Math.trunc(Number(id))
    // The id of a delta is the number of the stored event before it with a fraction, e.g. `12.3`; a
    // stored event has a new number.
    if (seq > this.seq) return this.#store({ seq, event })
    const last = this.#events.at(-1)?.event
    // What was read meanwhile may come again.
    if (seq < this.seq || !id.includes('.')) return
    if (last?.type === event.type && last.at === event.at) return
    this.#deltas.push(event)
    this.#view.push(event, seq)
    this.#facts.push(event, seq)
    this.#state = undefined
  }

  #store(logged: LoggedEvent): void {
    const { seq, event, isCut } = logged
    this.#events.push(logged)
    this.#view.push(event, seq)
    this.#facts.push(event, seq, isCut)
    if (!this.#facts.hasDraft) this.#deltas = []
    this.#state = undefined
  }

  /** Puts earlier events before the present ones. Computes the state in parts, so that the page stays responsive. */
  async prepend(pages: AsyncIterable<readonly LoggedEvent[]>): Promise<void> {
    const [view, facts] = [new ViewFold(), new FactsFold()]
    const before: LoggedEvent[] = []
    const add = ({ seq, event, isCut }: LoggedEvent): void => {
      view.push(event, seq)
      facts.push(event, seq, isCut)
    }
    const first = this.#events[0]?.seq ?? Infinity
    for await (const page of pages)
      for (const entry of page)
        if (entry.seq < first) {
          before.push(entry)
          add(entry)
        }
    for (const entry of this.#events) add(entry)
    for (const event of this.#deltas) add({ seq: this.seq, event })
    this.#earlier = (before[0]?.seq ?? first) - 1
    this.#events = [...before, ...this.#events]
    this.#view = view
    this.#facts = facts
    this.#state = undefined
  }

  get earlier(): number {
    return this.#earlier
  }

  /** The number of the last stored event. */
  get seq(): number {
    return this.#events.at(-1)?.seq ?? this.#earlier
  }

  get state(): ShownThread {
    if (this.#state) return this.#state
    const headFacts = this.#earlier > 0 && this.#info ? knownOf(this.#info) : {}
    const view = { ...this.#view.view, ...headFacts }
    const before = this.#last
    this.#last = { ...view, items: keepEqual(before?.items ?? [], view.items) }
    this.#state = {
      threadId: this.threadId,
      view: this.#last,
      facts: this.#facts.facts,
      events: this.#events,
      earlier: this.#earlier,
    }
    return this.#state
  }
}

/** Returns the fields that would be wrong in a view computed from the last events alone. */
function knownOf(info: ThreadInfo): Partial<ThreadView> {
  const { agent, title, parentId, createdAt, lifecycle: status, tokens, outputTokens } = info
  return {
    agent,
    title: title ?? undefined,
    parentThreadId: parentId ?? undefined,
    createdAt,
    status,
    usage: {
      inputTokens: tokens - outputTokens,
      outputTokens,
      costUsd: info.costUsd,
      requests: 0,
      turns: 0,
    },
  }
}

/**
 * Reuses the objects of items that have not changed, so that their rows are not rendered again. Earlier
 * items may have been inserted, so the lists are aligned at the item that was first before.
 */
function keepEqual(before: readonly ViewItem[], now: readonly ViewItem[]): readonly ViewItem[] {
  const key = before[0] && keyOf(before[0])
  const shift =
    key === undefined
      ? 0
      : Math.max(
          0,
          now.findIndex((item) => keyOf(item) === key),
        )
  return now.map((item, index) => {
    const old = before[index - shift]
    return old && isEqual(old, item) ? old : item
  })
}

function keyOf(item: ViewItem): string {
  return item.type === 'note' ? item.at + item.text : item.id
}

function isEqual(a: object, b: object): boolean {
  const names = Object.keys(a)
  if (names.length !== Object.keys(b).length) return false
  return names.every((name) => Object.is(a[name as never], b[name as never]))
}

/** Returns a thread as it was after the event with this number. */
export function threadAt({ threadId, events }: ShownThread, seq: number): ShownThread {
  const fold = new LogFold(threadId)
  fold.begin(events.slice(0, events.findLastIndex((one) => one.seq <= seq) + 1))
  return { ...fold.state, events, isPast: true }
}

/**
 * Returns a thread and its descendants as they were after an event of the thread. Descendants have logs
 * of their own, so their events are cut at the time of that event.
 */
export function treeAt(tree: TreeState, seq: number): TreeState {
  const root = tree.threads.get(tree.rootId)
  if (!root) return tree
  const time = timeAt(root.events, seq)
  const threads = new Map<string, ShownThread>()
  for (const [id, thread] of tree.threads) {
    if (thread === root) threads.set(id, threadAt(root, seq))
    else {
      const last = thread.events.findLast(({ event }) => Date.parse(event.at) <= time)
      if (last) threads.set(id, threadAt(thread, last.seq))
    }
  }
  return { ...tree, threads, below: new Map() }
}

/**
 * Returns the time of an event: the latest time up to it, because an event may have the earlier time of
 * what it records.
 */
export function timeAt(events: readonly LoggedEvent[], seq: number): number {
  let time = 0
  for (const { seq: number, event } of events) {
    if (number > seq) break
    time = Math.max(time, Date.parse(event.at))
  }
  return time
}

/** Whether a call has ended, although a question about it may be open: its outcome is unknown. */
export function isCallOver({ view }: ShownThread, toolCallId: string): boolean {
  return view.items.some(
    (item) => item.type === 'call' && item.id === toolCallId && item.endedAt !== undefined,
  )
}

/** A tree of which nothing was read yet. */
export function emptyTree(rootId: string, read: TreeReader): TreeState {
  return { rootId, threads: new Map(), below: new Map(), isLoaded: false, isWhole: false, read }
}

/** How many decisions people have to make in a thread. */
export function peopleWaitedFor({ view }: ShownThread): number {
  return view.waiting.filter((wait) => wait.for === 'person' || wait.for === 'client').length
}
