import { canonicalJson, deepFreeze, type JsonValue } from '@skein/base'
import { RuntimeError, type RuntimeErrorCode } from '../contract/error.ts'
import type { ThreadState } from '../contract/thread-state.ts'
import type { KernelEnvironment } from '../contract/context.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { KernelState } from '../contract/state.ts'
import type { Blob } from '../store/store.ts'

const MAX_KEY_LENGTH = 256
const MAX_VALUE_BYTES = 256 * 1024

type ValueMembers = Pick<ThreadState, 'getValue' | 'setValue' | 'listValues'>

interface FacadeValues extends ValueMembers {
  clear(): void
}

/** Values of a thread with what was set but not committed. */
export function facadeValues({ kernel, events, at }: FacadeBuffer): FacadeValues {
  const pending = new Map<string, JsonValue | null>()
  return {
    // Frozen, because a caller that changed the value in place would change the thread without an event.
    getValue: (key) => deepFreeze(overlaid(pending, kernel.values, key)),
    setValue(key, value) {
      checkValueKey(key)
      const copy = value === null ? null : checkedValue(key, value)
      events.push({ type: 'value_set', at: at(), key, value: copy })
      pending.set(key, copy)
    },
    listValues(prefix = '') {
      const listed = [...allOverlaid(pending, kernel.values)]
        .filter(([key]) => key.startsWith(prefix))
        .sort(([a], [b]) => (a < b ? -1 : 1))
      return deepFreeze(Object.fromEntries(listed))
    },
    clear: () => pending.clear(),
  }
}

/** Throws `VALUE_INVALID` for a key that cannot be used. */
export function checkValueKey(key: string): void {
  if (typeof key === 'string' && key !== '' && key.length <= MAX_KEY_LENGTH) return
  throw new RuntimeError('The key of a value is empty, too long or no text.', {
    code: 'VALUE_INVALID',
    hint: `Keys have 1 to ${MAX_KEY_LENGTH} characters.`,
  })
}

/** A copy of a value that can be kept; throws `VALUE_INVALID` for others. */
export function checkedValue(key: string, value: unknown): JsonValue {
  return jsonCopy(value, {
    subject: `The value "${key}"`,
    code: 'VALUE_INVALID',
    maxBytes: MAX_VALUE_BYTES,
  })
}

/** What the parts of a facade share: what they read from, and where they write. */
export interface FacadeBuffer {
  readonly kernel: KernelState
  readonly environment: KernelEnvironment
  /** The turn and the call of the writer, for events that name them. */
  readonly turnId?: string
  readonly toolCallId?: string
  readonly events: RuntimeEvent[]
  readonly blobs: Map<string, Blob>
  /** The time of an event. */
  at(): string
}

/** The pending value of a key, else the committed one; a pending null means removed. */
export function overlaid<Key, Value>(
  pending: ReadonlyMap<Key, Value | null>,
  kept: ReadonlyMap<Key, Value>,
  key: Key,
): Value | undefined {
  const own = pending.get(key)
  return own === undefined ? kept.get(key) : (own ?? undefined)
}

/** All committed values with the pending ones laid over them. */
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
 * Copies a value through JSON, so that later changes to the original change nothing here. Throws for
 * values that JSON would silently change, and for values that are too large.
 */
export function jsonCopy(
  value: unknown,
  limits: {
    /** Names the thing in errors, e.g. `The value "cart"`. */
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
  return JSON.parse(text) as JsonValue // it was written by JSON.stringify just above
}
