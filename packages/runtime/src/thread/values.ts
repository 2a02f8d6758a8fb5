import { deepFreeze, type JsonValue } from '@skein/base'
import { RuntimeError } from '../error.ts'
import type { ThreadState } from '../thread-state.ts'
import { allOverlaid, jsonCopy, overlaid, type FacadeBuffer } from './buffer.ts'

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
