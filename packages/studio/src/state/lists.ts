import type { ThreadInfo, WaitingItem } from '@skein/runtime'
import { ClientError, type Client } from '@skein/server/client'
import { whileVisible } from './while-visible.ts'
import { createStore, type PageStore } from './store.ts'

/** A list that the page keeps up to date. */
export interface Listed<T> {
  readonly items: readonly T[]
  readonly isLoaded: boolean
  /** Whether the list is complete; a long list is loaded in parts. */
  readonly isAll: boolean
  readonly error?: unknown
}

/** The threads and everything that waits for a person, kept up to date while the page is open. */
export interface Lists {
  /** The outermost threads, the latest first. */
  readonly threads: PageStore<Listed<ThreadInfo>>
  /** What waits for a person, the oldest first. */
  readonly inbox: PageStore<Listed<WaitingItem>>
  /** Reads the next part of the threads. */
  more(): void
  /** Calls the listener for every thread that changes, also for children. Returns the function to unsubscribe. */
  onThread(listener: (info: ThreadInfo) => void): () => void
  /** Reads both again now. */
  refresh(): void
}

/** The number of threads that are loaded first, and the number that are added when a person scrolls on. */
const FIRST_THREADS = 200
const MORE_THREADS = 1000
/** How often a hidden page checks whether something waits for a decision. */
const HIDDEN_MS = 60_000

const NOTHING = { isLoaded: false, isAll: false }

/** Loads the lists and keeps them up to date. If the person may not read them, both have an error. */
export function followLists(client: Client): Lists {
  const threads = createStore<Listed<ThreadInfo>>({ ...NOTHING, items: [] })
  const inbox = createStore<Listed<WaitingItem>>({ ...NOTHING, items: [] })
  const refresh = async (isReset = false): Promise<void> => {
    await Promise.all([
      load(threads, () => firstThreads(client, isReset ? undefined : threads.get())),
      load(inbox, async () => ({ items: await client.inbox.list(), isAll: true })),
    ])
  }
  let isReading = false
  const more = async (): Promise<void> => {
    const { items, isLoaded, isAll } = threads.get()
    if (isReading || !isLoaded || isAll) return
    isReading = true
    try {
      // Threads that change move to the front of the list, which is already loaded. So the number of
      // known threads is also the position at which the next part begins.
      const query = { parentId: null, limit: MORE_THREADS, offset: items.length }
      const page = await client.threads.list(query)
      const now = threads.get()
      const ids = new Set(now.items.map(({ id }) => id))
      const fresh = page.filter(({ id }) => !ids.has(id))
      threads.set({
        ...now,
        items: [...now.items, ...fresh],
        isAll: page.length < MORE_THREADS,
      })
    } catch {
      // Nothing to do: the part is loaded again when the person scrolls again.
    } finally {
      isReading = false
    }
  }
  const listeners = new Set<(info: ThreadInfo) => void>()
  // A separate function, because a loop variable in the function that waits for the next change would
  // keep the last listener, and with it a closed thread, in memory.
  const tell = (thread: ThreadInfo): void => {
    for (const listener of listeners) listener(thread)
  }
  let position: string | undefined
  whileVisible(async (signal) => {
    for await (const change of client.changes({ after: position, signal })) {
      // The first message has the current position of the feed, so a list loaded after it misses no later change.
      if (position === undefined || change.type === 'reset') await refresh(true)
      position = change.position
      if (change.type !== 'thread') continue
      apply(change, threads, inbox)
      tell(change.thread)
    }
  })
  setInterval(() => {
    if (document.hidden)
      void load(inbox, async () => ({ items: await client.inbox.list(), isAll: true }))
  }, HIDDEN_MS)
  return {
    threads,
    inbox,
    more: () => void more(),
    onThread(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    refresh: () => void refresh(),
  }
}

/** Loads the latest threads; older threads that were loaded before are kept. */
async function firstThreads(
  client: Client,
  before: Listed<ThreadInfo> | undefined,
): Promise<Pick<Listed<ThreadInfo>, 'items' | 'isAll'>> {
  const page = await client.threads.list({ parentId: null, limit: FIRST_THREADS })
  if (!before || page.length < FIRST_THREADS)
    return { items: page, isAll: page.length < FIRST_THREADS }
  const ids = new Set(page.map(({ id }) => id))
  const oldest = page.at(-1)!.updatedAt
  const older = before.items.filter(({ id, updatedAt }) => !ids.has(id) && updatedAt <= oldest)
  return { items: [...page, ...older], isAll: before.isAll }
}

function apply(
  { thread, waiting }: { readonly thread: ThreadInfo; readonly waiting: readonly WaitingItem[] },
  threads: PageStore<Listed<ThreadInfo>>,
  inbox: PageStore<Listed<WaitingItem>>,
): void {
  if (thread.parentId === null) {
    const others = threads.get().items.filter(({ id }) => id !== thread.id)
    const items = [thread, ...others].toSorted((a, b) => b.updatedAt.localeCompare(a.updatedAt))
    threads.set({ ...threads.get(), items, isLoaded: true })
  }
  const others = inbox.get().items.filter(({ threadId }) => threadId !== thread.id)
  if (waiting.length === 0 && others.length === inbox.get().items.length) return
  const items = [...others, ...waiting].toSorted((a, b) => a.openedAt.localeCompare(b.openedAt))
  inbox.set({ items, isLoaded: true, isAll: true })
}

async function load<T>(
  store: PageStore<Listed<T>>,
  read: () => Promise<Pick<Listed<T>, 'items' | 'isAll'>>,
): Promise<void> {
  try {
    store.set({ ...(await read()), isLoaded: true })
  } catch (error) {
    // Data that was loaded before stays, so that the page is not emptied when the server is away for a moment.
    const isRefused = error instanceof ClientError && !error.isTemporary
    const before = store.get()
    if (isRefused || !before.isLoaded) store.set({ ...before, error })
  }
}
