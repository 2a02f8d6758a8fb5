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
  const lost = (): void => {
    if (status.get().type !== 'lost') status.set({ type: 'lost', since: Date.now() })
  }
  const watched: typeof fetch = async (input, init) => {
    try {
      const response = await fetch(input, init)
      heard(response.status === 401)
      return response
    } catch (error) {
      if (!init?.signal?.aborted) lost()
      throw error
    }
  }
  const wait = (ms: number, signal: AbortSignal | undefined): Promise<void> => {
    lost() // a stream broke, or could not be opened
    return waitOrWake(Math.min(ms, LONGEST_WAIT_MS), signal)
  }
  return {
    client: createClient({ url, fetch: watched, streams: { wait, quietMs: 45_000 } }),
    url,
    status,
    fetch: watched,
  }
}

/** The longest wait before a reconnection. It is short, because a person is looking at the page. */
const LONGEST_WAIT_MS = 5000

/** Waits. The wait ends early if the network returns or the person comes back to the page. */
function waitOrWake(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      removeEventListener('online', done)
      document.removeEventListener('visibilitychange', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done, { once: true })
    addEventListener('online', done, { once: true })
    document.addEventListener('visibilitychange', done, { once: true })
  })
}
