import type { ThreadHead } from '@skein/runtime'
import type { Statement } from './connections.ts'

/** Returns the statement that adds the changes of threads to the sums over all threads; undefined if no sum changes. */
export function totalsStatement(
  s: string,
  heads: Iterable<Readonly<Record<'head' | 'before', ThreadHead | undefined>>>,
): Statement | undefined {
  const sums = new Map<string, number>()
  const add = (name: string, value: number): void => {
    sums.set(name, (sums.get(name) ?? 0) + value)
  }
  for (const { head, before } of heads) {
    if (before) add(before.lifecycle, -1)
    if (head) add(head.lifecycle, 1)
    add('tokens', (head?.tokens ?? 0) - (before?.tokens ?? 0))
    add('cost_usd', (head?.costUsd ?? 0) - (before?.costUsd ?? 0))
  }
  if ([...sums.values()].every((value) => value === 0)) return undefined
  const sets = TOTALS.map((name, index) => `${name} = ${name} + $${index + 1}`)
  return {
    // Takes any row that no other transaction has locked; if all are locked, waits for one.
    text: `UPDATE ${s}.totals SET ${sets.join(', ')} WHERE part = coalesce(
      (SELECT part FROM ${s}.totals LIMIT 1 FOR UPDATE SKIP LOCKED),
      (SELECT part FROM ${s}.totals ORDER BY random() LIMIT 1))`,
    values: TOTALS.map((name) => sums.get(name) ?? 0),
  }
}

/** The lifecycles, which are columns of `totals`. */
export const COUNTED_LIFECYCLES: readonly ThreadHead['lifecycle'][] = [
  'idle',
  'queued',
  'running',
  'waiting',
  'stopping',
  'stopped',
  'failed',
  'terminated',
  'erased',
]

const TOTALS: readonly string[] = [...COUNTED_LIFECYCLES, 'tokens', 'cost_usd']
