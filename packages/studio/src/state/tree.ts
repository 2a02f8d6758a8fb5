import { ViewFold, type ThreadView, type ViewItem } from '@skein/runtime/view'
import type { NumberedEvent, ThreadInfo } from '@skein/runtime'
import { FactsFold, type Facts } from './facts.ts'

type AnyEvent = NumberedEvent['event']

/** An event of the log with its number. */
export interface LoggedEvent {
  readonly seq: number
  readonly event: AnyEvent
  /** Whether a long result of a tool was left on the server; `event` has its beginning. */
  readonly isCut?: boolean
}

/** One thread as the page knows it. */
export interface ShownThread {
  readonly threadId: string
  readonly view: ThreadView
  readonly facts: Facts
  /** Whether text that streams now still has to pass a gate. */
  readonly isGated: boolean
  /** The stored events. The same array grows; `view.seq` says how far it is. */
  readonly events: readonly LoggedEvent[]
  /** How many events before these were not read. */
  readonly earlier: number
  /** Whether this is an earlier state of the thread, on which no actions are possible. */
  readonly isPast?: boolean
}

/** A thread with its descendants, as far as they were read. */
export interface TreeState {
  readonly rootId: string
  /** The threads whose events were read. */
  readonly threads: ReadonlyMap<string, ShownThread>
  /** The descendants as the list of threads has them, once it was read. */
  readonly below: ReadonlyMap<string, ThreadInfo>
  /** Whether the history of the thread itself is loaded, so that all further events are new. */
  readonly isLoaded: boolean
  /** Whether the events of all descendants have been read, too. */
  readonly isWhole: boolean
  /** Why the thread cannot be read. */
  readonly error?: unknown
  readonly read: TreeReader
}

/** Loads parts of a tree that are not loaded automatically. */
export interface TreeReader {
  /** Reads one descendant, because it is opened. */
  readonly thread: (threadId: string) => void
  /** Reads all descendants, because the timeline or an earlier time is shown. */
  readonly all: () => void
  /** Reads the events before those that are shown. */
  readonly earlier: () => void
}

/**
 * Folds the events of one thread. The last events of a long thread are read first and folded alone; when the
 * earlier ones are there, everything is folded again.
 */
export class LogFold {
  readonly threadId: string
  #events: LoggedEvent[] = []
  /** How many events before these were not read. */
  #earlier = 0
  /** What the model has streamed since the last stored message; not in the log. */
  #deltas: AnyEvent[] = []
  #view = new ViewFold()
  #facts = new FactsFold()
  #state: ShownThread | undefined
  #last: ThreadView | undefined
  /** What the list of threads says, for as long as only the end of the log is known. */
  readonly #info: ThreadInfo | undefined

  constructor(threadId: string, info?: ThreadInfo) {
    this.threadId = threadId
    this.#info = info
  }

  /** Begins with the end of a log. */
  begin(events: readonly LoggedEvent[]): void {
    this.#earlier = (events[0]?.seq ?? 1) - 1
    for (const logged of events) this.#store(logged)
  }

  /** Adds an event of the stream. */
  push(id: string, event: AnyEvent): void {
    const seq = Math.trunc(Number(id))
    // A delta has the number of the stored event before it, with a fraction; a stored event has a new number.
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

  /** Puts earlier events before those that are there. Folds in parts, so that the page stays responsive. */
  async prepend(pages: AsyncIterable<readonly LoggedEvent[]>): Promise<void> {
    const [view, facts] = [new ViewFold(), new FactsFold()]
    const before: LoggedEvent[] = []
    const add = ({ seq, event, isCut }: LoggedEvent): void => {
      view.push(event, seq)
      facts.push(event, seq, isCut)
    }
    const first = this.#events[0]?.seq ?? Infinity
    for await (const page of pages)
      for (const logged of page)
        if (logged.seq < first) {
          before.push(logged)
          add(logged)
        }
    for (const logged of this.#events) add(logged)
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
    const known = this.#earlier > 0 && this.#info ? knownOf(this.#info) : {}
    const view = { ...this.#view.view, ...known }
    const before = this.#last
    this.#last = { ...view, items: keepEqual(before?.items ?? [], view.items) }
    this.#state = {
      threadId: this.threadId,
      view: this.#last,
      facts: this.#facts.facts,
      isGated: this.#facts.isGated,
      events: this.#events,
      earlier: this.#earlier,
    }
    return this.#state
  }
}

/** Returns the fields that a view folded from only the last events would get wrong. */
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
 * Reuses the objects of items that have not changed, so that their rows are not rendered again. Earlier items may
 * have come before them, so items are compared from the end if their number is another.
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
 * Returns a thread and its descendants as they were after an event of the thread. Descendants have logs of their
 * own, so they are cut by the time of that event.
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

/** The time when an event was written; an event may carry the earlier time of what it records. */
export function timeAt(events: readonly LoggedEvent[], seq: number): number {
  let time = 0
  for (const { seq: number, event } of events) {
    if (number > seq) break
    time = Math.max(time, Date.parse(event.at))
  }
  return time
}

/** A tree of which nothing was read yet. */
export function emptyTree(rootId: string, read: TreeReader): TreeState {
  return { rootId, threads: new Map(), below: new Map(), isLoaded: false, isWhole: false, read }
}
