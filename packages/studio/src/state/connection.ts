import { type Client, createClient } from '@skein/server/client'
import { createStore, type PageStore } from './store.ts'

/** Whether the server answers. `isSignedOut` means that it answers, but the person is not signed in. */
export interface ConnectionStatus {
  readonly type: 'connecting' | 'live' | 'lost'
  /** When the connection was lost, in ms. */
  readonly since?: number
  readonly isSignedOut?: boolean
}

/** The server that the page came from. */
export interface StudioConnection {
  readonly client: Client
  /** The address of the server, with its prefix and without a slash at the end. */
  readonly url: string
  readonly status: PageStore<ConnectionStatus>
  /** Sends any request to the server, for operations for which `client` has no method. */
  readonly fetch: typeof fetch
}

/**
 * Connects to the server. The client reconnects its streams by itself; this function watches each of
 * its requests, so that the page can show whether the server answers.
 */
export function createConnection(url: string): StudioConnection {
  const status = createStore<ConnectionStatus>({ type: 'connecting' })
  const heard = (isSignedOut: boolean): void => {
    const { type, isSignedOut: before = false } = status.get()
    if (type !== 'live' || before !== isSignedOut) status.set({ type: 'live', isSignedOut })
  }
  const onLost = (): void => {
    if (status.get().type !== 'lost') status.set({ type: 'lost', since: Date.now() })
  }
  const watchingFetch: typeof fetch = async (input, init) => {
    try {
      const response = await fetch(input, init)
      heard(response.status === 401)
      return response
    } catch (error) {
      if (!init?.signal?.aborted) onLost()
      throw error
    }
  }
  const wait = (ms: number, signal: AbortSignal | undefined): Promise<void> => {
    onLost() // a stream broke, or could not be opened
    return waitOrWake(Math.min(ms, LONGEST_WAIT_MS), signal)
  }
  return {
    client: createClient({ url, fetch: watchingFetch, streams: { wait, quietMs: 45_000 } }),
    url,
    status,
    fetch: watchingFetch,
  }
}

/** The longest wait before a reconnection. It is short, because a person is looking at the page. */
const LONGEST_WAIT_MS = 5000

/** Waits. The wait ends early if the network returns or the person comes back to the page. */
function waitOrWake(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', finish)
      removeEventListener('online', finish)
      document.removeEventListener('visibilitychange', finish)
      resolve()
    }
    const timer = setTimeout(finish, ms)
    signal?.addEventListener('abort', finish, { once: true })
    addEventListener('online', finish, { once: true })
    document.addEventListener('visibilitychange', finish, { once: true })
  })
}
