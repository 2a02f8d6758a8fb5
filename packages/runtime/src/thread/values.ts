import { deepFreeze, type JsonValue } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import type { ThreadState } from '../contract/thread-state.ts'
import type { RuntimeEvent, ValueSet } from '../contract/event.ts'
import { type FacadeBuffer, overlaid, allOverlaid, jsonCopy } from './facade-buffer.ts'
import type { ValueUse, ValueRead, ValueUpdate } from './value-reads.ts'

const MAX_KEY_LENGTH = 256
const MAX_VALUE_BYTES = 256 * 1024

type ValueMembers = Pick<ThreadState, 'getValue' | 'setValue' | 'updateValue' | 'listValues'>

interface FacadeValues extends ValueMembers {
  /** Returns how the code has used values since the last call of `take`, and forgets its pending changes. */
  take(): ValueUse
}

/**
 * Creates the methods of a thread's state for values (`getValue`, `setValue` …). Reads include changes
 * that are not committed yet.
 */
export function facadeValues({ kernel, events, at }: FacadeBuffer): FacadeValues {
  const pending = new Map<string, JsonValue | null>()
  let reads = new Map<string, ValueRead>()
  let updates = new Map<RuntimeEvent, ValueUpdate>()
  /** Keys whose pending value was computed from the committed value, so that it depends on other writers. */
  const derivedKeys = new Set<string>()

  function noteRead(key: string, isPrefix: boolean): void {
    const name = JSON.stringify([key, isPrefix])
    if (!reads.has(name)) reads.set(name, { key, isPrefix, seq: kernel.seq })
  }

  function put(key: string, value: JsonValue | null): ValueSet {
    checkValueKey(key)
    const copy = value === null ? null : checkedValue(key, value)
    const event: ValueSet = { type: 'value_set', at: at(), key, value: copy }
    events.push(event)
    pending.set(key, copy)
    return event
  }

  return {
    getValue(key) {
      if (!pending.has(key) || derivedKeys.has(key)) noteRead(key, false)
      // The value is frozen: a caller that changed it in place would change the thread without an event
      // in the log.
      return deepFreeze(overlaid(pending, kernel.values, key))
    },
    setValue(key, value) {
      put(key, value)
      derivedKeys.delete(key)
    },
    updateValue(key, change) {
      const base = deepFreeze(overlaid(pending, kernel.values, key))
      const isDerived = !pending.has(key) || derivedKeys.has(key)
      const event = put(key, change(base))
      // If the code has set this value itself before, the result does not depend on other writers.
      if (!isDerived) return
      derivedKeys.add(key)
      updates.set(event, { change, base })
    },
    listValues(prefix = '') {
      noteRead(prefix, true)
      const entries = [...allOverlaid(pending, kernel.values)]
        .filter(([key]) => key.startsWith(prefix))
        .sort(([a], [b]) => (a < b ? -1 : 1))
      return deepFreeze(Object.fromEntries(entries))
    },
    take() {
      const use = { reads: [...reads.values()], updates }
      reads = new Map()
      updates = new Map()
      derivedKeys.clear()
      pending.clear()
      return use
    },
  }
}

/** Throws `VALUE_INVALID` for a key that is empty, too long or not a string. */
export function checkValueKey(key: string): void {
  if (typeof key === 'string' && key !== '' && key.length <= MAX_KEY_LENGTH) return
  throw new RuntimeError('The key of a value is empty, too long or no text.', {
    code: 'VALUE_INVALID',
    hint: `Keys have 1 to ${MAX_KEY_LENGTH} characters.`,
  })
}

/** Returns a copy of a value that can be stored; throws `VALUE_INVALID` for other values. */
export function checkedValue(key: string, value: unknown): JsonValue {
  return jsonCopy(value, {
    subject: `The value "${key}"`,
    code: 'VALUE_INVALID',
    maxBytes: MAX_VALUE_BYTES,
  })
}
