import type { NumberedEvent, ThreadInfo } from '@skein/runtime'
import { ClientError, type Client } from '@skein/server/client'
import { whileVisible } from './while-visible.ts'
import { createStore, type PageStore } from './store.ts'
import { emptyTree, LogFold, type LoggedEvent, type TreeState } from './tree.ts'

type Numbered = Pick<NumberedEvent, 'id' | 'event'>

/** How many events, counted from the end of the thread, are loaded first. */
const TAIL = 300
/** How many characters of a tool result are loaded; the rest is loaded when a person opens the result. */
const RESULT_CHARS = 20_000
/** The most events that the server sends in one answer. */
const PAGE = 1000
/** How many events are loaded by default; earlier ones are loaded when a person asks for them. */
const MAX_EVENTS = 50_000
/** Up to this number of descendants, all are loaded with the thread; otherwise each is loaded when it is opened. */
const MAX_THREADS = 40
/** How many requests for events run at the same time: browsers allow six connections, and two are streams. */
const PARALLEL = 3
/** How often the page is updated while descendants are being loaded. */
const SHOW_MS = 500
/** How many streamed events are kept at most for a thread that is not loaded yet. */
const MAX_WAITING = 2000

/** A thread and its descendants, kept up to date while someone looks at them. */
export interface FollowedTree extends Pick<PageStore<TreeState>, 'get' | 'subscribe'> {
  close(): void
}

/**
 * Follows a thread and its descendants. First the end of the thread is loaded, then the earlier events
 * and the descendants; new events of all of them come over one connection. Subscribers are notified
 * once per frame of the browser, however many events arrive.
 */
export function followTree(
  client: Client,
  rootId: string,
  onThread: (listener: (info: ThreadInfo) => void) => () => void,
): FollowedTree {
  const tree = new Follower(client, rootId)
  const stop = whileVisible(
    (signal) => tree.follow(signal),
    (error) => tree.fail(error),
  )
  const forget = onThread((info) => tree.learn(info))
  const { get, subscribe } = tree.store
  return {
    get,
    subscribe,
    close() {
      stop()
      forget()
      tree.close()
    },
  }
}

class Follower {
  readonly store: PageStore<TreeState>
  readonly #client: Client
  readonly #rootId: string
  readonly #folds = new Map<string, LogFold>()
  #below = new Map<string, ThreadInfo>()
  /** Streamed events of the running step of each thread that is not loaded; they are used when the thread is opened. */
  readonly #waiting = new Map<string, Numbered[]>()
  readonly #asked = new Set<string>()
  readonly #closed = new AbortController()
  #position: string | undefined
  #isLoaded = false
  #isWhole = false
  #isScheduled = false

  constructor(client: Client, rootId: string) {
    this.#client = client
    this.#rootId = rootId
    this.store = createStore<TreeState>(
      emptyTree(rootId, {
        thread: (threadId) => void this.#readThread(threadId).then(() => this.#publish()),
        all: () => void this.#readAll(),
        earlier: () => void this.#readEarlier(0),
      }),
    )
  }

  close(): void {
    this.#closed.abort()
  }

  fail(error: unknown): void {
    this.store.set({ ...this.store.get(), error })
  }

  /** Loads the end of the thread, and then follows new events. */
  async follow(signal: AbortSignal): Promise<void> {
    if (this.#position === undefined) await this.#begin()
    const options = { after: this.#position, isLive: true, signal }
    for await (const event of this.#client.streamTree(this.#rootId, options)) {
      this.#position = event.position
      this.#take(event.threadId, event)
    }
  }

  async #begin(): Promise<void> {
    const { threads } = this.#client
    // The first events are requested right away too: most threads are shorter than `TAIL`, and then
    // nothing else is needed.
    const [info, first] = await Promise.all([
      threads.get(this.#rootId),
      threads.events(this.#rootId, { limit: TAIL, maxResultChars: RESULT_CHARS }),
    ])
    const isShort = info.seq <= TAIL
    const events = isShort
      ? first
      : await threads.events(this.#rootId, {
          after: info.seq - TAIL,
          limit: PAGE,
          maxResultChars: RESULT_CHARS,
        })
    const fold = new LogFold(this.#rootId, info)
    fold.begin(events)
    this.#folds.set(this.#rootId, fold)
    this.#position = String(fold.seq)
    this.#isLoaded = isShort
    this.#publish()
    void this.#readRest(info)
  }

  /** Loads the earlier events, and the descendants unless there are too many. */
  async #readRest(info: ThreadInfo): Promise<void> {
    await this.#readEarlier(Math.max(0, info.seq - MAX_EVENTS))
    this.#isLoaded = true
    const root = this.#folds.get(this.#rootId)!
    if (root.state.view.children.length > 0) await this.#readList(info)
    else this.#isWhole = true
    this.#publish()
    if (this.#below.size <= MAX_THREADS) await this.#readAll()
  }

  /** Loads the events of the thread after `from` that are still missing. */
  async #readEarlier(from: number): Promise<void> {
    const root = this.#folds.get(this.#rootId)
    if (!root || root.earlier <= from) return
    await root.prepend(this.#pages(this.#rootId, from, root.earlier))
    this.#publish()
  }

  /** Reads which descendants there are. */
  async #readList({ id, rootId }: ThreadInfo): Promise<void> {
    const parents = new Set([id])
    const below = new Map<string, ThreadInfo>()
    for (let offset = 0, isFull = true; isFull; offset += PAGE) {
      const query = { rootId, sort: 'oldest', limit: PAGE, offset } as const
      const page = await this.#again(() => this.#client.threads.list(query))
      for (const info of page)
        // The list is sorted by age and parents are older than their children, so the parent was seen before.
        if (info.parentId !== null && parents.has(info.parentId)) {
          parents.add(info.id)
          below.set(info.id, info)
        }
      isFull = page.length === PAGE
    }
    this.#below = below
  }

  /** Remembers what the list of threads says about a descendant. */
  learn(info: ThreadInfo): void {
    const { parentId } = info
    if (parentId === null || !this.#isLoaded) return
    if (parentId !== this.#rootId && !this.#below.has(parentId)) return
    this.#below = new Map(this.#below).set(info.id, info)
    this.#publish()
  }

  /** Reads all descendants. */
  async #readAll(): Promise<void> {
    const ids = [...this.#below.keys()].filter((id) => !this.#asked.has(id))
    let shownAt = performance.now()
    const readNext = async (): Promise<void> => {
      for (let id = ids.shift(); id !== undefined; id = ids.shift()) {
        await this.#readThread(id)
        // The page is not updated after each thread, because that would take longer than loading them.
        if (performance.now() < shownAt + SHOW_MS) continue
        shownAt = performance.now()
        this.#publish()
      }
    }
    await Promise.all(Array.from({ length: PARALLEL }, readNext))
    this.#isWhole ||= this.#isLoaded
    this.#publish()
  }

  async #readThread(threadId: string): Promise<void> {
    if (this.#asked.has(threadId) || this.#folds.has(threadId)) return
    this.#asked.add(threadId)
    const fold = new LogFold(threadId, this.#below.get(threadId))
    try {
      await fold.prepend(this.#pages(threadId, 0, Infinity))
    } catch {
      // A thread that was removed, or that the person may not read, is shown only as a line in its parent.
      return
    }
    this.#folds.set(threadId, fold)
    for (const { id, event } of this.#waiting.get(threadId) ?? []) fold.push(id, event)
    this.#waiting.delete(threadId)
  }

  /** Returns the events after `from` up to `to`, page by page. */
  async *#pages(
    threadId: string,
    from: number,
    to: number,
  ): AsyncGenerator<readonly LoggedEvent[]> {
    const readPage = (after: number): Promise<readonly LoggedEvent[]> =>
      this.#again(() =>
        this.#client.threads.events(threadId, { after, limit: PAGE, maxResultChars: RESULT_CHARS }),
      )
    if (to === Infinity) {
      for (let after = from; ;) {
        const page = await readPage(after)
        yield page
        if (page.length < PAGE) return
        after = page.at(-1)!.seq
      }
    }
    // Numbers of events have no gaps, so several pages can be requested at the same time.
    const pages: Promise<readonly LoggedEvent[]>[] = []
    for (let after = from; after < to || pages.length > 0;) {
      for (; after < to && pages.length < PARALLEL; after += PAGE) pages.push(readPage(after))
      yield await pages.shift()!
      await nextTask()
    }
  }

  /** Asks until the server answers. */
  async #again<T>(ask: () => Promise<T>): Promise<T> {
    for (;;) {
      try {
        return await ask()
      } catch (error) {
        const isTemporary = error instanceof ClientError && error.isTemporary
        if (!isTemporary || this.#closed.signal.aborted) throw error
        await new Promise((resolve) => setTimeout(resolve, 1000))
      }
    }
  }

  /** Adds an event of the stream to the thread to which it belongs. */
  #take(threadId: string, numbered: Numbered): void {
    const { id, event } = numbered
    let fold = this.#folds.get(threadId)
    // If the first event of a thread arrives here, the thread is new, and nothing else of it has to be loaded.
    if (!fold && id === '1' && !this.#asked.has(threadId))
      this.#folds.set(threadId, (fold = new LogFold(threadId)))
    if (fold) {
      fold.push(id, event)
      this.#publish()
    } else {
      const waiting = this.#waiting.get(threadId) ?? []
      const isAsked = this.#asked.has(threadId)
      if (event.type === 'step_start' && !isAsked) waiting.length = 0
      if (isAsked || waiting.length < MAX_WAITING) waiting.push(numbered)
      this.#waiting.set(threadId, waiting)
    }
  }

  #publish(): void {
    if (this.#isScheduled || this.#closed.signal.aborted) return
    this.#isScheduled = true
    afterFrame(() => {
      this.#isScheduled = false
      const threads = new Map(Array.from(this.#folds, ([id, fold]) => [id, fold.state] as const))
      this.store.set({
        ...this.store.get(),
        threads,
        below: this.#below,
        isLoaded: this.#isLoaded,
        isWhole: this.#isWhole,
      })
    })
  }
}

/** Lets the browser do other work: handle a key press, render a frame. */
function nextTask(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve))
}

/** Calls back before the next frame. A hidden page renders no frames, so it uses a timer. */
function afterFrame(call: () => void): void {
  if (document.hidden) setTimeout(call, 250)
  else requestAnimationFrame(call)
}
