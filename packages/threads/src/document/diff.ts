import { isObject } from '@skein/base'
import { joinPointer } from '../issue.ts'
import type { Thread } from './thread.ts'

/** One difference between two threads. `before` is absent for an added value, `after` for a removed value. */
export interface Difference {
  readonly pointer: string
  readonly kind: 'added' | 'removed' | 'changed'
  readonly before?: unknown
  readonly after?: unknown
}

/** The result of `diffThreads`. */
export interface ThreadDiff {
  /**
   * The number of equal turns at the start of both threads. After these turns, the fork (or the copy of a
   * client or server) differs.
   */
  readonly commonTurns: number
  readonly differences: readonly Difference[]
}

/** Returns the differences between two threads, by JSON pointer. `null` and absent are different. */
export function diffThreads(before: Thread, after: Thread): ThreadDiff {
  const differences = [...diffValues(before, after, '')]
  const shortest = Math.min(before.turns.length, after.turns.length)
  let commonTurns = 0
  for (; commonTurns < shortest; commonTurns++) {
    const [left, right] = [before.turns[commonTurns], after.turns[commonTurns]]
    if (!diffValues(left, right, '').next().done) break
  }
  return { commonTurns, differences }
}

/**
 * Returns the differences between two JSON values, in the order of the first value; added members come last.
 */
function* diffValues(
  before: unknown,
  after: unknown,
  pointer: string,
): Generator<Difference, void, undefined> {
  if (before === after || (Number.isNaN(before) && Number.isNaN(after))) return
  if (Array.isArray(before) && Array.isArray(after)) {
    const length = Math.max(before.length, after.length)
    for (let index = 0; index < length; index++) {
      const place = joinPointer(pointer, index)
      if (index >= before.length) yield { pointer: place, kind: 'added', after: after[index] }
      else if (index >= after.length)
        yield { pointer: place, kind: 'removed', before: before[index] }
      else yield* diffValues(before[index], after[index], place)
    }
  } else if (isObject(before) && isObject(after)) {
    for (const key of Object.keys(before)) {
      if (isAbsent(before, key)) continue
      const place = joinPointer(pointer, key)
      if (isAbsent(after, key)) yield { pointer: place, kind: 'removed', before: before[key] }
      else yield* diffValues(before[key], after[key], place)
    }
    for (const key of Object.keys(after)) {
      if (isAbsent(before, key) && !isAbsent(after, key))
        yield { pointer: joinPointer(pointer, key), kind: 'added', after: after[key] }
    }
  } else yield { pointer, kind: 'changed', before, after }
}

/** True when a member is missing or undefined, which is the same in JSON. */
function isAbsent(fields: { readonly [key: string]: unknown }, key: string): boolean {
  return !Object.hasOwn(fields, key) || fields[key] === undefined
}
