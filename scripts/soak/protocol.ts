/** The key of the load; the server knows no other. */
export const KEY = 'key-of-the-soak-0123456789'

/** What the server process holds after a collection. */
export interface Held {
  /** Bytes of the heap in use. */
  readonly heap: number
  readonly external: number
  readonly arrayBuffers: number
  readonly rss: number
  readonly handles: number
  /** The longest stall of the event loop since the last question. */
  readonly stallMs: number
  readonly cpuMs: number
  /** Errors that no client was notified of. */
  readonly errors: number
}

export type ServerQuestion =
  | { readonly type: 'held' }
  | { readonly type: 'snapshot'; readonly path: string }
  | { readonly type: 'stop' }

export type ServerAnswer =
  | { readonly type: 'ready'; readonly url: string }
  | { readonly type: 'held'; readonly held: Held }
  | { readonly type: 'snapshot'; readonly path: string }
