import { isObject } from '@skein/base'

/** If more pairs of steps would have to be compared, steps are paired in order instead, which is fast. */
const MAX_COMPARED = 4_000_000

/**
 * Aligns two lists of steps, e.g. the messages and calls of two threads or branches, or words, or
 * lines. Two steps are the same if they are equal apart from their ids and times. Different steps are
 * paired if they are of the same kind (`type`, `from` and `toolName`).
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

/** Returns the indexes of a longest common subsequence, between `start` and the end of each list. */
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
  const pairs: (readonly [number, number])[] = []
  for (let [row, column] = [0, 0]; row < rows && column < columns;) {
    if (left[start + row] === right[start + column]) pairs.push([start + row++, start + column++])
    else if (lengths[row + 1]![column]! >= lengths[row]![column + 1]!) row++
    else column++
  }
  return pairs
}

/** The text by which steps are compared: without ids and times, because these always differ between two runs. */
function stepText(step: unknown): string {
  if (!isObject(step)) return JSON.stringify(step) ?? ''
  const content = Object.entries(step).filter(([name]) => !/^(?:id|at|.*Id|.*At)$/.test(name))
  return JSON.stringify(Object.fromEntries(content))
}

function stepKind(step: unknown): string {
  if (!isObject(step)) return typeof step
  return JSON.stringify([step['type'], step['from'], step['toolName']])
}
