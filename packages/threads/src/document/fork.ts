import { type Clock, type IdSource, isObject, systemClock, timeOrderedIds } from '@skein/base'
import { joinPointer, ThreadError } from '../issue.ts'
import { keepJsonText } from '../json/json-stringify.ts'
import type { Thread } from './thread.ts'

/** Settings of `forkThread`. */
export interface ForkOptions {
  /** The number of turns, from the first on, that the fork keeps. Default: all. */
  readonly turns?: number
  /** The relation of the link to the original thread. Default `fork`; `regenerate` and `edit` are common. */
  readonly relation?: string
  readonly threadId?: string
  readonly clock?: Clock
  readonly ids?: IdSource
}

/**
 * Creates a new thread that starts with the turns of the given thread. The turns are shared, not copied, and
 * the original is not changed. The fork links to the original; the original has no link to its forks.
 */
export function forkThread(thread: Thread, options: ForkOptions = {}): Thread {
  const { turns: count = thread.turns.length, relation = 'fork', clock = systemClock } = options
  if (!Number.isInteger(count) || count < 0 || count > thread.turns.length) {
    throw new ThreadError(
      `A thread of ${thread.turns.length} turns cannot be forked after ${count}.`,
      {
        code: 'FORK_OUT_OF_RANGE',
        hint: 'Give a whole number from 0 to the number of turns.',
      },
    )
  }
  const ids = options.ids ?? timeOrderedIds({ clock })
  const now = new Date(clock.now()).toISOString()
  const link = { thread_id: thread.thread_id, relation, metadata: { turns: count } }
  return keepJsonText(thread, {
    ...thread,
    thread_id: options.threadId ?? ids(),
    created_at: now,
    updated_at: now,
    parent_thread_id: thread.thread_id,
    relationships: {
      ...thread.relationships,
      links: [...(thread.relationships?.links ?? []), link],
    },
    turns: thread.turns.slice(0, count),
  })
}

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

/** Larger differences are paired in order, because comparing every step with every other would take too long. */
const MAX_COMPARED = 4_000_000

/**
 * Aligns the steps of two threads or branches: messages, calls, or anything else in order, also words or lines.
 * Steps are the same if they are equal apart from their ids and times. Steps that differ stand beside each other
 * if they are of the same kind (`type`, `from` and `toolName`).
 */
export function alignSteps<T>(
  before: readonly T[],
  after: readonly T[],
): readonly { readonly before?: T; readonly after?: T; readonly isSame: boolean }[] {
  const [left, right] = [before.map(stepText), after.map(stepText)]
  let start = 0
  while (start < left.length && start < right.length && left[start] === right[start]) start++
  let end = 0
  const shortest = Math.min(left.length, right.length) - start
  while (end < shortest && left.at(-1 - end) === right.at(-1 - end)) end++
  const pairs: { before?: T; after?: T; isSame: boolean }[] = []
  const same = (a: number, b: number): void =>
    void pairs.push({ before: before[a]!, after: after[b]!, isSame: true })
  for (let index = 0; index < start; index++) same(index, index)
  let [a, b] = [start, start]
  const differ = (toA: number, toB: number): void => {
    while (a < toA || b < toB) {
      const isPair = a < toA && b < toB && stepKind(before[a]) === stepKind(after[b])
      if (isPair) pairs.push({ before: before[a++]!, after: after[b++]!, isSame: false })
      else if (a < toA) pairs.push({ before: before[a++]!, isSame: false })
      else pairs.push({ after: after[b++]!, isSame: false })
    }
  }
  const [endA, endB] = [left.length - end, right.length - end]
  for (const [sameA, sameB] of commonSteps(left, right, start, endA, endB)) {
    differ(sameA, sameB)
    same(a++, b++)
  }
  differ(endA, endB)
  for (let index = end; index > 0; index--) same(left.length - index, right.length - index)
  return pairs
}

/** Returns the places of a longest common subsequence between `start` and the ends. */
function commonSteps(
  left: readonly string[],
  right: readonly string[],
  start: number,
  endA: number,
  endB: number,
): (readonly [number, number])[] {
  const [rows, columns] = [endA - start, endB - start]
  if (rows * columns > MAX_COMPARED) return []
  const lengths = Array.from({ length: rows + 1 }, () => new Uint16Array(columns + 1))
  for (let row = rows - 1; row >= 0; row--)
    for (let column = columns - 1; column >= 0; column--)
      lengths[row]![column] =
        left[start + row] === right[start + column]
          ? lengths[row + 1]![column + 1]! + 1
          : Math.max(lengths[row + 1]![column]!, lengths[row]![column + 1]!)
  const found: (readonly [number, number])[] = []
  for (let [row, column] = [0, 0]; row < rows && column < columns;) {
    if (left[start + row] === right[start + column]) found.push([start + row++, start + column++])
    else if (lengths[row + 1]![column]! >= lengths[row]![column + 1]!) row++
    else column++
  }
  return found
}

/** The text by which steps are compared: without ids and times, which differ in any two runs. */
function stepText(step: unknown): string {
  if (!isObject(step)) return JSON.stringify(step) ?? ''
  const kept = Object.entries(step).filter(([name]) => !/^(?:id|at|.*Id|.*At)$/.test(name))
  return JSON.stringify(Object.fromEntries(kept))
}

function stepKind(step: unknown): string {
  if (!isObject(step)) return typeof step
  return JSON.stringify([step['type'], step['from'], step['toolName']])
}
