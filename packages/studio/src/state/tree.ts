import { ViewFold, type ThreadView, type ViewItem } from '@skein/runtime/view'
import type { NumberedEvent } from '@skein/runtime'
import type { Client } from '@skein/runtime/client'
import { whileVisible } from './connection.ts'
import { FactsFold, type Facts } from './facts.ts'
import { createStore, type PageStore } from './store.ts'

type AnyEvent = NumberedEvent['event']

/** An event of the log with its number. */
export interface LoggedEvent {
  readonly seq: number
  readonly event: AnyEvent
}

/** One thread as the page knows it. */
export interface ShownThread {
  readonly threadId: string
  /** Names of the agents from the streamed thread down to this one. */
  readonly path: readonly string[]
  readonly view: ThreadView
  readonly facts: Facts
  /** Whether text that streams now still has to pass a gate. */
  readonly isGated: boolean
  /** The stored events. The same array grows; `view.seq` says how far it is. */
  readonly events: readonly LoggedEvent[]
  /** Whether this is the thread as it was: nothing can be done with it. */
  readonly isPast?: boolean
}

/** A thread with its descendants, as far as they were read. */
export interface TreeState {
  readonly rootId: string
  readonly threads: ReadonlyMap<string, ShownThread>
  /** Whether the history has been read, so that what comes now is new. */
  readonly isLoaded: boolean
  /** Why the thread cannot be read. */
  readonly error?: unknown
}

/** Folds the events of one thread; `state` is cheap when nothing has changed. */
class ThreadFold {
  readonly threadId: string
  readonly path: readonly string[]
  readonly events: LoggedEvent[] = []
  readonly #view = new ViewFold()
  readonly #facts = new FactsFold()
  #state: ShownThread | undefined

  constructor(threadId: string, path: readonly string[]) {
    this.threadId = threadId
    this.path = path
  }

  push(id: string, event: AnyEvent): void {
    const seq = Math.trunc(Number(id))
    // The ids of stored events are whole numbers; those of deltas have a fraction.
    if (!id.includes('.')) {
      // After a break the server may send an event that is here already.
      if (seq <= this.seq) return
      this.events.push({ seq, event })
    }
    this.#view.push(event, seq)
    this.#facts.push(event, seq)
    this.#state = undefined
  }

  /** The number of the last stored event. */
  get seq(): number {
    return this.events.at(-1)?.seq ?? 0
  }

  get state(): ShownThread {
    if (this.#state) return this.#state
    const view = this.#view.view
    const before = this.#last
    this.#last = { ...view, items: keepEqual(before?.items ?? [], view.items) }
    this.#state = {
      threadId: this.threadId,
      path: this.path,
      view: this.#last,
      facts: this.#facts.facts,
      isGated: this.#facts.isGated,
      events: this.events,
    }
    return this.#state
  }

  #last: ThreadView | undefined
}

/** Reuses the objects of items that have not changed, so that their rows are not rendered again. */
function keepEqual(before: readonly ViewItem[], now: readonly ViewItem[]): readonly ViewItem[] {
  return now.map((item, index) => {
    const old = before[index]
    return old && isEqual(old, item) ? old : item
  })
}

function isEqual(a: object, b: object): boolean {
  const names = Object.keys(a)
  if (names.length !== Object.keys(b).length) return false
  return names.every((name) => Object.is(a[name as never], b[name as never]))
}

/** Returns a thread as it was after the event with this number. */
export function threadAt({ threadId, path, events }: ShownThread, seq: number): ShownThread {
  const fold = new ThreadFold(threadId, path)
  for (const { seq: number, event } of events) {
    if (number > seq) break
    fold.push(String(number), event)
  }
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
  return { ...tree, threads }
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

/** So often a history that is being read is shown. */
const HISTORY_MS = 400

/** A thread and its descendants that are followed while somebody looks. */
export interface FollowedTree extends Pick<PageStore<TreeState>, 'get' | 'subscribe'> {
  close(): void
}

/**
 * Follows a thread and all its descendants over one connection. Events are folded as they arrive; subscribers
 * are notified once per frame, however many events a frame brings.
 */
export function followTree(client: Client, rootId: string): FollowedTree {
  const store = createStore<TreeState>({ rootId, threads: new Map(), isLoaded: false })
  const folds = new Map<string, ThreadFold>()
  let historyEnd = Infinity
  let position: string | undefined
  let isScheduled = false
  let shownAt = -Infinity

  const publish = (): void => {
    isScheduled = false
    shownAt = performance.now()
    const root = folds.get(rootId)
    const isLoaded = store.get().isLoaded || (root?.seq ?? 0) >= historyEnd
    const threads = new Map(Array.from(folds, ([id, fold]) => [id, fold.state] as const))
    store.set({ rootId, threads, isLoaded })
  }
  const close = whileVisible(
    async (signal) => {
      historyEnd = (await client.threads.get(rootId)).seq
      for await (const event of client.streamTree(rootId, { after: position, signal })) {
        const { threadId, path, id } = event
        position = event.position
        let fold = folds.get(threadId)
        if (!fold) folds.set(threadId, (fold = new ThreadFold(threadId, path)))
        fold.push(id, event.event)
        if (isScheduled) continue
        // While a long history is read, showing every part of it would take longer than reading it.
        const isEarly = !store.get().isLoaded && performance.now() < shownAt + HISTORY_MS
        if (isEarly && (folds.get(rootId)?.seq ?? 0) < historyEnd) continue
        isScheduled = true
        afterFrame(publish)
      }
    },
    (error) => store.set({ ...store.get(), error }),
  )
  return { get: store.get, subscribe: store.subscribe, close }
}

/** Calls back at the next frame; a page that nobody sees has no frames. */
function afterFrame(call: () => void): void {
  if (document.hidden) setTimeout(call, 250)
  else requestAnimationFrame(call)
}
