import { canonicalJson, type JsonValue } from '@skein/base'
import { RuntimeError, type RuntimeErrorCode } from '../contract/error.ts'
import type { KernelEnvironment } from '../context/environment.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { Blob } from '../store/commit.ts'

/** What all parts of a thread's state object share: the state that they read, and the buffers to which they write. */
export interface FacadeBuffer {
  readonly kernel: KernelState
  readonly environment: KernelEnvironment
  /** The turn and the call in which the user's code runs, for events that name them. */
  readonly turnId?: string
  readonly toolCallId?: string
  readonly events: RuntimeEvent[]
  readonly blobs: Map<string, Blob>
  /** Returns the current time in the form in which events have it. */
  at(): string
}

/**
 * Returns the pending value of a key, else the committed one. A pending null means that the value is removed.
 */
export function overlaid<Key, Value>(
  pending: ReadonlyMap<Key, Value | null>,
  kept: ReadonlyMap<Key, Value>,
  key: Key,
): Value | undefined {
  const own = pending.get(key)
  return own === undefined ? kept.get(key) : (own ?? undefined)
}

/** Returns all committed values, overridden by the pending ones. */
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

/**
 * Copies a value through JSON, so that later changes to the original do not affect the copy. Throws for
 * values that JSON would silently change, and for values that are too large.
 */
export function jsonCopy(
  value: unknown,
  limits: {
    /** What errors call the value, e.g. `The value "cart"`. */
    readonly subject: string
    readonly code: RuntimeErrorCode
    readonly maxBytes: number
  },
): JsonValue {
  const { subject, code, maxBytes } = limits
  let text: string
  try {
    canonicalJson(value)
    text = JSON.stringify(value)
  } catch (cause) {
    throw new RuntimeError(`${subject} is not JSON.`, { code, cause })
  }
  const bytes = Buffer.byteLength(text)
  if (bytes > maxBytes) {
    throw new RuntimeError(`${subject} has ${bytes} bytes.`, {
      code,
      hint: `At most ${maxBytes} are kept; write large things to a file.`,
    })
  }
  return JSON.parse(text) as JsonValue // `text` comes from JSON.stringify above
}
