import type { RuntimeEvent } from '../event.ts'
import type { KernelEnvironment } from '../kernel/environment.ts'
import type { KernelState } from '../kernel/state.ts'
import type { Blob } from '../store/store.ts'

/** What the parts of a facade share: what they read from, and where they write. */
export interface FacadeBuffer {
  readonly kernel: KernelState
  readonly environment: KernelEnvironment
  /** Of the call that writes, for events that name it. */
  readonly turnId?: string
  readonly toolCallId?: string
  readonly events: RuntimeEvent[]
  readonly blobs: Map<string, Blob>
  /** The time of an event. */
  at(): string
}

/** Looks up in what was written, then in the thread; null there means removed. */
export function overlaid<Key, Value>(
  pending: ReadonlyMap<Key, Value | null>,
  kept: ReadonlyMap<Key, Value>,
  key: Key,
): Value | undefined {
  const own = pending.get(key)
  return own === undefined ? kept.get(key) : (own ?? undefined)
}

/** Everything there is, with what was written put over the thread's own. */
export function allOverlaid<Key, Value>(
  pending: ReadonlyMap<Key, Value | null>,
  kept: ReadonlyMap<Key, Value>,
): Map<Key, Value> {
  const all = new Map(kept)
  for (const [key, value] of pending) {
    if (value === null) all.delete(key)
    else all.set(key, value)
  }
  return all
}
