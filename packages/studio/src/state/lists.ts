import type { ThreadInfo, WaitingItem } from '@skein/runtime'
import { ClientError, type Client } from '@skein/runtime/client'
import { whileVisible } from './connection.ts'
import { createStore, type PageStore } from './store.ts'

/** A list that the page keeps up to date. */
export interface Listed<T> {
  readonly items: readonly T[]
  readonly isLoaded: boolean
  readonly error?: unknown
}

/** The threads and everything that waits for a person, kept up to date while the page is open. */
export interface Lists {
  /** The outermost threads, the latest first. */
  readonly threads: PageStore<Listed<ThreadInfo>>
  /** What waits for a person, the oldest first. */
  readonly inbox: PageStore<Listed<WaitingItem>>
  /** Calls back for every thread that changes, also below others. Returns a function that ends it. */
  onThread(listener: (info: ThreadInfo) => void): () => void
  /** Reads both again now. */
  refresh(): void
}

const LIST_LIMIT = 1000
/** So often a page that nobody sees looks whether there is something to decide. */
const HIDDEN_MS = 60_000

/** Reads the lists, and follows what changes in them. Without a right to read, both say so. */
export function followLists(client: Client): Lists {
  const threads = createStore<Listed<ThreadInfo>>({ items: [], isLoaded: false })
  const inbox = createStore<Listed<WaitingItem>>({ items: [], isLoaded: false })
  const refresh = async (): Promise<void> => {
    await Promise.all([
      load(threads, () => client.threads.list({ parentId: null, limit: LIST_LIMIT })),
      load(inbox, () => client.inbox.list()),
    ])
  }
  const listeners = new Set<(info: ThreadInfo) => void>()
  let position: string | undefined
  whileVisible(async (signal) => {
    for await (const change of client.changes({ after: position, signal })) {
      // The first frame says where the feed begins, so what is listed now misses nothing that follows.
      if (position === undefined || change.type === 'reset') await refresh()
      position = change.position
      if (change.type !== 'thread') continue
      apply(change, threads, inbox)
      for (const listener of listeners) listener(change.thread)
    }
  })
  setInterval(() => {
    if (document.hidden) void load(inbox, () => client.inbox.list())
  }, HIDDEN_MS)
  return {
    threads,
    inbox,
    onThread(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    refresh: () => void refresh(),
  }
}

function apply(
  { thread, waiting }: { readonly thread: ThreadInfo; readonly waiting: readonly WaitingItem[] },
  threads: PageStore<Listed<ThreadInfo>>,
  inbox: PageStore<Listed<WaitingItem>>,
): void {
  if (thread.parentId === null) {
    const others = threads.get().items.filter(({ id }) => id !== thread.id)
    const items = [thread, ...others].toSorted((a, b) => b.updatedAt.localeCompare(a.updatedAt))
    threads.set({ items, isLoaded: true })
  }
  const others = inbox.get().items.filter(({ threadId }) => threadId !== thread.id)
  if (waiting.length === 0 && others.length === inbox.get().items.length) return
  const items = [...others, ...waiting].toSorted((a, b) => a.openedAt.localeCompare(b.openedAt))
  inbox.set({ items, isLoaded: true })
}

async function load<T>(
  store: PageStore<Listed<T>>,
  read: () => Promise<readonly T[]>,
): Promise<void> {
  try {
    store.set({ items: await read(), isLoaded: true })
  } catch (error) {
    // What was read before stays: a server that is away for a moment does not empty the page.
    const isRefused = error instanceof ClientError && !error.isTemporary
    const before = store.get()
    if (isRefused || !before.isLoaded) store.set({ ...before, error })
  }
}
