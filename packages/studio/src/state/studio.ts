import { createContext, useContext, useEffect, useMemo } from 'react'
import { createConnection, type StudioConnection } from './connection.ts'
import { followLists, type Lists } from './lists.ts'
import { createStore, type PageStore, useStore } from './store.ts'
import { type FollowedTree, followTree } from './follow.ts'
import { emptyTree, type TreeState } from './tree.ts'

/** Who uses the page, and what the server allows this person to do. */
export interface Me {
  readonly tenant: string
  readonly user?: string
  readonly name?: string
  readonly scopes: readonly string[]
  /** Whether the person signed in to the page with a key, so that signing out makes sense. */
  readonly isSignedIn: boolean
  readonly server: {
    readonly name: string
    readonly version: string
    readonly playground: boolean
    /** Whether programs have to send a key with their requests. */
    readonly needsKey: boolean
    /** The prefix of the server's paths; a proxy may have replaced it in the address of the page. */
    readonly prefix: string
  }
}

/** Everything the page knows, in one place. */
export interface Studio extends StudioConnection {
  readonly lists: Lists
  /** Undefined until the server has answered; null if no one is signed in. */
  readonly me: PageStore<Me | null | undefined>
  /** Signs in with a key; the server keeps it in a cookie that scripts cannot read. */
  signIn(key: string): Promise<void>
  signOut(): Promise<void>
  /** Short notices at the edge of the page. */
  readonly notices: PageStore<readonly Notice[]>
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
  const me = createStore<Me | null | undefined>(undefined)
  let count = 0
  const ask = (method: string, path: string, json?: object): Promise<Response> =>
    connection.fetch(`${url}/studio/${path}`, {
      method,
      headers: json && { 'content-type': 'application/json' },
      body: json && JSON.stringify(json),
    })
  const meet = async (): Promise<void> => {
    for (;;) {
      const response = await ask('GET', 'me').catch(() => undefined)
      if (response?.ok) return me.set((await response.json()) as Me) // the server's own answer
      if (response && response.status < 500 && response.status !== 429) return me.set(null)
      await new Promise((resolve) => setTimeout(resolve, 1000))
    }
  }
  void meet()
  return {
    ...connection,
    lists: followLists(connection.client),
    notices,
    me,
    async signIn(key) {
      const response = await ask('POST', 'session', { key })
      if (response.ok) return location.reload()
      const { error } = (await response.json()) as { error: { message: string } } // an error of ours has this shape
      throw Object.assign(new Error(error.message), error)
    },
    async signOut() {
      await ask('DELETE', 'session')
      location.reload()
    },
    notify(text) {
      const notice = { id: ++count, text }
      notices.set([...notices.get(), notice])
      setTimeout(() => notices.set(notices.get().filter((one) => one !== notice)), NOTICE_MS)
    },
  }
}

/** The React context that passes the state of the page to its components. */
export const StudioContext: React.Context<Studio | undefined> = createContext<Studio | undefined>(
  undefined,
)

/** Returns the state of the page. */
export function useStudio(): Studio {
  const studio = useContext(StudioContext)
  if (!studio) throw new Error('There is no StudioContext above this component.')
  return studio
}

/** Whether the person may do something. */
export function useMay(scope: string): boolean {
  const { me } = useStudio()
  const scopes = useStore(me)?.scopes
  return scopes === undefined || scopes.includes(scope) || scopes.includes('admin')
}

/** Whether programs have to send a key to the server, so that the commands that are shown contain one. */
export function useNeedsKey(): boolean {
  const { me } = useStudio()
  return useStore(me)?.server.needsKey !== false
}

/** Follows a thread with its descendants while the component is mounted. */
export function useTree(threadId: string): TreeState {
  const { client, lists } = useStudio()
  const tree = useMemo(
    () => lazyTree(() => followTree(client, threadId, lists.onThread), threadId),
    [client, lists, threadId],
  )
  useEffect(() => tree.open(), [tree])
  return useStore(tree)
}

/** A tree that is loaded only from the first effect on, because React may render a component that it then discards. */
function lazyTree(
  follow: () => FollowedTree,
  rootId: string,
): Pick<PageStore<TreeState>, 'get' | 'subscribe'> & { open(): () => void } {
  const nothing = (): void => undefined
  const empty = emptyTree(rootId, { thread: nothing, all: nothing, earlier: nothing })
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
      const current = (tree = follow())
      const stop = current.subscribe(tell)
      tell()
      return () => {
        stop()
        current.close()
      }
    },
  }
}
