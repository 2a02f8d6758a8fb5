import type { ThreadInfo, WaitingItem } from '@skein/runtime'
import type { Client } from '@skein/runtime/client'
import { createStore, type Store } from './store.ts'

/** A list that the page keeps up to date. */
export interface Listed<T> {
  readonly items: readonly T[]
  readonly isLoaded: boolean
  readonly error?: unknown
}

/** The threads and everything that waits for a person, kept up to date while the page is open. */
export interface Lists {
  readonly threads: Store<Listed<ThreadInfo>>
  readonly inbox: Store<Listed<WaitingItem>>
  /** Reads both again now, e.g. after a decision. */
  refresh(): void
}

const LIST_LIMIT = 1000

/** Follows the lists. */
export function followLists(client: Client): Lists {
  const threads = createStore<Listed<ThreadInfo>>({ items: [], isLoaded: false })
  const inbox = createStore<Listed<WaitingItem>>({ items: [], isLoaded: false })
  const refresh = (): void => {
    void load(threads, () => client.threads.list({ parentId: null, limit: LIST_LIMIT }))
    void load(inbox, () => client.inbox.list())
  }
  refresh()
  setInterval(() => {
    if (!document.hidden) refresh()
  }, 2000)
  return { threads, inbox, refresh }
}

async function load<T>(store: Store<Listed<T>>, read: () => Promise<readonly T[]>): Promise<void> {
  try {
    const items = await read()
    const before = store.get()
    const isSame = before.isLoaded && JSON.stringify(before.items) === JSON.stringify(items)
    if (!isSame || before.error !== undefined) store.set({ items, isLoaded: true })
  } catch (error) {
    store.set({ ...store.get(), error })
  }
}
