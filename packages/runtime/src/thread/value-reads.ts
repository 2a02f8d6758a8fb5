import { canonicalJson, deepFreeze, type JsonValue } from '@skein/base'
import { RuntimeError } from '../contract/error.ts'
import type { RuntimeEvent } from '../contract/event.ts'
import type { KernelState } from '../state/kernel-state.ts'
import type { UserValueUse } from './user-values.ts'
import { overlaid } from './facade-buffer.ts'
import { checkedValue } from './values.ts'

/** How code has used the values of a thread; tells at the commit whether another writer has changed them since. */
export interface ValueUse {
  readonly reads: readonly ValueRead[]
  /** The functions passed to `updateValue`, by the event that contains the result of their first call. */
  readonly updates: ReadonlyMap<RuntimeEvent, ValueUpdate>
  /** The changes to values of the user; absent if there are none. */
  readonly user?: UserValueUse
}

export interface ValueRead {
  /** The key that was read, or the prefix of the keys that were listed. */
  readonly key: string
  readonly isPrefix: boolean
  /** The number of the log's last event when the key was first read. */
  readonly seq: number
}

export interface ValueUpdate {
  readonly change: (value: JsonValue | undefined) => JsonValue | null
  /** The value with which the function was called. */
  readonly base: JsonValue | undefined
}

/** Returns the keys of the values that the events set. */
export function writtenKeys(events: readonly RuntimeEvent[]): ReadonlySet<string> {
  return new Set(events.flatMap((event) => (event.type === 'value_set' ? [event.key] : [])))
}

/** Returns the reads of these keys. */
export function readsOf({ reads }: ValueUse, keys: ReadonlySet<string>): readonly ValueRead[] {
  return reads.filter((read) =>
    read.isPrefix ? [...keys].some((key) => key.startsWith(read.key)) : keys.has(read.key),
  )
}

/** Throws `STATE_CONFLICT` if one of the values was set after it was read; `keys` limits the check to these keys. */
export function checkReads(
  { threadId, valueSeqs }: Pick<KernelState, 'threadId' | 'valueSeqs'>,
  reads: readonly ValueRead[],
  keys?: ReadonlySet<string>,
): void {
  for (const { key, isPrefix, seq } of reads) {
    const conflict = isPrefix
      ? [...valueSeqs].find(
          ([name, at]) => name.startsWith(key) && at > seq && (keys?.has(name) ?? true),
        )?.[0]
      : (valueSeqs.get(key) ?? 0) > seq
        ? key
        : undefined
    if (conflict === undefined) continue
    throw new RuntimeError(
      `The value "${conflict}" of thread ${threadId} was changed by another writer after it was read.`,
      {
        code: 'STATE_CONFLICT',
        hint: 'Nothing was stored. Read the value again, or change it with `updateValue`.',
      },
    )
  }
}

/** Returns the events with the functions passed to `updateValue` applied to the values as they are now. */
export function withUpdates(
  events: readonly RuntimeEvent[],
  { updates }: ValueUse,
  values: ReadonlyMap<string, JsonValue>,
): readonly RuntimeEvent[] {
  if (updates.size === 0) return events
  const pending = new Map<string, JsonValue | null>()
  return events.map((event) => {
    if (event.type !== 'value_set') return event
    const update = updates.get(event)
    const now = update && deepFreeze(overlaid(pending, values, event.key))
    const isSame = !update || canonicalJson(now ?? null) === canonicalJson(update.base ?? null)
    const next = isSame ? event.value : update.change(now)
    const value = isSame || next === null ? next : checkedValue(event.key, next)
    pending.set(event.key, value)
    return isSame ? event : { ...event, value }
  })
}
