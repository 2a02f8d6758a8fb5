import { isObject } from './is-object.ts'
import { joinPointer } from './issue.ts'
import type { Thread } from './types.ts'

/** One difference. A value that is absent on one side has no `before`, or no `after`. */
export interface Difference {
  readonly pointer: string
  readonly kind: 'added' | 'removed' | 'changed'
  readonly before?: unknown
  readonly after?: unknown
}

export interface ThreadDiff {
  /** How many turns both begin with: where a fork left, or where a client and a server part. */
  readonly commonTurns: number
  readonly differences: readonly Difference[]
}

/** What differs between two threads, place by place. `null` and absent are different things. */
export function diffThreads(before: Thread, after: Thread): ThreadDiff {
  const differences = [...diffValues(before, after, '')]
  const shortest = Math.min(before.turns.length, after.turns.length)
  let commonTurns = 0
  while (commonTurns < shortest && isSame(before.turns[commonTurns], after.turns[commonTurns]))
    commonTurns++
  return { commonTurns, differences }
}

function isSame(before: unknown, after: unknown): boolean {
  return diffValues(before, after, '').next().done === true
}

/** The differences between two JSON values, in the order of the first. */
export function* diffValues(
  before: unknown,
  after: unknown,
  pointer: string,
): Generator<Difference, void, undefined> {
  if (before === after || (Number.isNaN(before) && Number.isNaN(after))) return
  if (Array.isArray(before) && Array.isArray(after)) yield* diffLists(before, after, pointer)
  else if (isObject(before) && isObject(after)) yield* diffObjects(before, after, pointer)
  else yield { pointer, kind: 'changed', before, after }
}

function* diffLists(
  before: readonly unknown[],
  after: readonly unknown[],
  pointer: string,
): Generator<Difference, void, undefined> {
  const length = Math.max(before.length, after.length)
  for (let index = 0; index < length; index++) {
    const place = joinPointer(pointer, index)
    if (index >= before.length) yield { pointer: place, kind: 'added', after: after[index] }
    else if (index >= after.length) yield { pointer: place, kind: 'removed', before: before[index] }
    else yield* diffValues(before[index], after[index], place)
  }
}

type Fields = { readonly [key: string]: unknown }

function* diffObjects(
  before: Fields,
  after: Fields,
  pointer: string,
): Generator<Difference, void, undefined> {
  for (const key of Object.keys(before)) {
    const place = joinPointer(pointer, key)
    if (Object.hasOwn(after, key)) yield* diffValues(before[key], after[key], place)
    else yield { pointer: place, kind: 'removed', before: before[key] }
  }
  for (const key of Object.keys(after)) {
    if (!Object.hasOwn(before, key))
      yield { pointer: joinPointer(pointer, key), kind: 'added', after: after[key] }
  }
}
