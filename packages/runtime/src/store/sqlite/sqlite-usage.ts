import type { ReadRows } from './sqlite-list.ts'
import type { Row } from './sqlite-rows.ts'
import type { ThreadHead, TreeUsage } from '../head.ts'

/** How many threads are summed without a pause. */
const SLICE = 2000

/** The statements about a set of threads in the order of creation, from a place on. */
interface SetStatements {
  readonly sums: string
  /** Reads the ids of those that have children; undefined if the set has all levels of a tree. */
  readonly parents: string | undefined
  /** Reads the place of the last thread that `sums` has summed. */
  readonly place: string
}

function statementsOf(column: string, index: string, hasAllLevels: boolean): SetStatements {
  const from = `threads INDEXED BY ${index} WHERE ${column} = ? AND (created_at, id) > (?, ?)
    ORDER BY created_at, id`
  return {
    sums: `SELECT total(tokens) AS tokens, total(cost_usd) AS cost, total(unpriced) AS unpriced,
        total(waiting) AS waiting, count(*) AS count
      FROM (SELECT tokens, cost_usd, unpriced, waiting FROM ${from} LIMIT ${SLICE})`,
    parents: hasAllLevels
      ? undefined
      : `SELECT id FROM (SELECT id FROM ${from} LIMIT ${SLICE}) AS child
      WHERE EXISTS (SELECT 1 FROM threads INDEXED BY threads_by_parent WHERE parent_id = child.id)`,
    place: `SELECT created_at AS at, id FROM ${from} LIMIT 1 OFFSET ${SLICE - 1}`,
  }
}

const TREE = statementsOf('root_id', 'threads_by_root', true)
const CHILDREN = statementsOf('parent_id', 'threads_by_parent', false)

/**
 * Sums what each thread has used together with its descendants. Yields where many threads were read: there the caller
 * lets other work run.
 */
export function* subtreeUsages(
  read: ReadRows,
  heads: readonly ThreadHead[],
): Generator<void, Map<string, TreeUsage>, undefined> {
  const usages = new Map<string, TreeUsage>()
  let rows = 0
  for (const head of heads) {
    const sum = { tokens: 0, costUsd: 0, unpriced: 0, waiting: 0 }
    const isRoot = head.parentId === null
    if (!isRoot) add(sum, head)
    const parents = [head.id]
    for (const id of parents)
      for (const part of sumsOf(read, isRoot ? TREE : CHILDREN, id)) {
        add(sum, part.usage)
        // The list grows while the loop runs, so that all levels are visited.
        parents.push(...part.parents)
        rows += part.rows
        if (rows < SLICE) continue
        rows = 0
        yield
      }
    usages.set(head.id, sum)
  }
  return usages
}

type Sum = { -readonly [Name in keyof TreeUsage]: TreeUsage[Name] }

function add(sum: Sum, { tokens, costUsd, unpriced, waiting }: TreeUsage): void {
  sum.tokens += tokens
  sum.costUsd += costUsd
  sum.unpriced += unpriced
  sum.waiting += waiting
}

/** The sum of at most `SLICE` threads of a set. */
interface PartialSum {
  readonly usage: TreeUsage
  readonly rows: number
  /** The ids of those that have children, if the set is the children of a thread. */
  readonly parents: readonly string[]
}

function* sumsOf(
  read: ReadRows,
  set: SetStatements,
  id: string,
): Generator<PartialSum, void, undefined> {
  for (let at = Number.MIN_SAFE_INTEGER, last = ''; ;) {
    const [row] = read(set.sums, id, at, last)
    const rows = Number(row?.['count'])
    const parents = set.parents === undefined || rows === 0 ? [] : read(set.parents, id, at, last)
    yield { usage: usageFrom(row), rows, parents: parents.map((one) => one['id'] as string) }
    if (rows < SLICE) return
    const [end] = read(set.place, id, at, last)
    if (!end) return // removed meanwhile
    at = end['at'] as number
    last = end['id'] as string
  }
}

/** Converts a row of sums. */
export function usageFrom(row: Row | undefined): TreeUsage {
  return {
    tokens: Number(row?.['tokens']),
    costUsd: Number(row?.['cost']),
    unpriced: Number(row?.['unpriced']),
    waiting: Number(row?.['waiting']),
  }
}
