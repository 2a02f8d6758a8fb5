import { CompactRange, consistencyRanges, inclusionRanges } from './merkle.ts'
import type { Hash, LeafRange } from './merkle.ts'

/** Leaf hashes in log order, from a file or from memory. */
export type LeafHashes = AsyncIterable<Hash> | Iterable<Hash>

/** The inclusion path of leaf `index` in the tree of `size`, from one pass over the leaves. */
export function proveInclusion(leaves: LeafHashes, index: number, size: number): Promise<Hash[]> {
  return rootsOf(leaves, inclusionRanges(index, size))
}

/** The consistency proof from the tree of `first` to the tree of `second`, from one pass. */
export function proveConsistency(
  leaves: LeafHashes,
  first: number,
  second: number,
): Promise<Hash[]> {
  return rootsOf(leaves, consistencyRanges(first, second))
}

/** The roots of disjoint ranges, in the order asked for, in O(log n) memory. */
async function rootsOf(leaves: LeafHashes, ranges: readonly LeafRange[]): Promise<Hash[]> {
  const inOrder = [...ranges].sort((a, b) => a.from - b.from)
  const roots = new Map<number, Hash>()
  let next = 0
  let index = 0
  let range = new CompactRange()
  for await (const leaf of leaves) {
    const wanted = inOrder[next]
    if (wanted === undefined) break
    if (index >= wanted.from) range.append(leaf)
    if (++index === wanted.to) {
      roots.set(wanted.from, range.root())
      range = new CompactRange()
      next++
    }
  }
  return ranges.map(({ from }) => roots.get(from)!)
}
