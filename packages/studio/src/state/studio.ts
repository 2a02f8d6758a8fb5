import { createContext, useContext, useEffect, useMemo, useState } from 'react'
import { createConnection, type Connection } from './connection.ts'
import { followLists, type Lists } from './lists.ts'
import { createStore, useStore, type Store } from './store.ts'
import { followTree, type FollowedTree, type TreeState } from './tree.ts'

/** Everything the page knows, in one place. */
export interface Studio extends Connection {
  readonly lists: Lists
  /** Short notices at the edge of the page. */
  readonly notices: Store<readonly Notice[]>
  notify(text: string): void
}

/** A short notice about something that the person did. */
export interface Notice {
  readonly id: number
  readonly text: string
}

const NOTICE_MS = 6000

/** Creates the state of the page for the server at this address. */
export function createStudio(url: string): Studio {
  const connection = createConnection(url)
  const notices = createStore<readonly Notice[]>([])
  let count = 0
  return {
    ...connection,
    lists: followLists(connection.client),
    notices,
    notify(text) {
      const notice = { id: ++count, text }
      notices.set([...notices.get(), notice])
      setTimeout(() => notices.set(notices.get().filter((one) => one !== notice)), NOTICE_MS)
    },
  }
}

/** Gives the state of the page to its components. */
export const StudioContext: React.Context<Studio | undefined> = createContext<Studio | undefined>(
  undefined,
)

/** Returns the state of the page. */
export function useStudio(): Studio {
  const studio = useContext(StudioContext)
  if (!studio) throw new Error('There is no StudioContext above this component.')
  return studio
}

/** Follows a thread with its descendants while the component is there. */
export function useTree(threadId: string): TreeState {
  const { client } = useStudio()
  const tree = useMemo(
    () => lazyTree(() => followTree(client, threadId), threadId),
    [client, threadId],
  )
  useEffect(() => tree.open(), [tree])
  return useStore(tree)
}

/** A tree that is followed from the first effect on: React may render a component that it then drops. */
function lazyTree(
  follow: () => FollowedTree,
  rootId: string,
): Pick<Store<TreeState>, 'get' | 'subscribe'> & { open(): () => void } {
  const empty: TreeState = { rootId, threads: new Map(), isLoaded: false }
  let tree: FollowedTree | undefined
  const listeners = new Set<() => void>()
  const tell = (): void => {
    for (const listener of listeners) listener()
  }
  return {
    get: () => tree?.get() ?? empty,
    subscribe(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    open() {
      const opened = (tree = follow())
      const stop = opened.subscribe(tell)
      tell()
      return () => {
        stop()
        opened.close()
      }
    },
  }
}

/** Something that is read once, with its states. */
export interface Resource<T> {
  readonly value?: T
  readonly error?: unknown
  readonly isLoading: boolean
  reload(): void
}

/** Reads something when the component appears and whenever `key` changes. Undefined as key reads nothing. */
export function useResource<T>(
  key: string | undefined,
  read: (signal: AbortSignal) => Promise<T>,
): Resource<T> {
  const [count, setCount] = useState(0)
  const [state, setState] = useState<{ key?: string; value?: T; error?: unknown }>({})
  useEffect(() => {
    if (key === undefined) return
    const abort = new AbortController()
    read(abort.signal).then(
      (value) => !abort.signal.aborted && setState({ key, value }),
      (error: unknown) => !abort.signal.aborted && setState({ key, error }),
    )
    return () => abort.abort()
    // `read` is a new function at each render; `key` says what it reads.
  }, [key, count])
  const isCurrent = state.key === key
  return {
    value: isCurrent ? state.value : undefined,
    error: isCurrent ? state.error : undefined,
    isLoading: key !== undefined && !isCurrent,
    reload: () => setCount(count + 1),
  }
}
