import { createSha256, sha256 } from '@skein/base'

/** A SHA-256 hash, 32 bytes. */
export type TreeHash = Uint8Array

const utf8 = new TextEncoder()

/**
 * Hashes a leaf (RFC 6962 §2.1). A 0 byte is put before the data, so that no leaf can be mistaken for a
 * node.
 */
export function leafHash(data: Uint8Array | string): TreeHash {
  const bytes = typeof data === 'string' ? utf8.encode(data) : data
  const input = new Uint8Array(bytes.length + 1)
  input.set(bytes, 1)
  return sha256(input)
}

/** Hashes an inner node (RFC 6962 §2.1). A 1 byte is put before the hashes of the two children. */
export function nodeHash(left: TreeHash, right: TreeHash): TreeHash {
  // All calls share one buffer. This is safe because hashing is synchronous.
  nodeInput.set(left, 1)
  nodeInput.set(right, 33)
  return sha256(nodeInput)
}

const nodeInput = new Uint8Array(65)
nodeInput[0] = 1

/** Returns the root of the empty tree. */
export function emptyRoot(): TreeHash {
  return createSha256().digest()
}

/**
 * A Merkle tree to which leaves can only be appended. It keeps only the roots of its perfect subtrees,
 * largest first, so it needs only O(log n) memory.
 */
export class CompactRange {
  #size: number
  readonly #peaks: TreeHash[]

  constructor(size = 0, peaks: readonly TreeHash[] = []) {
    this.#size = size
    this.#peaks = [...peaks]
  }

  get size(): number {
    return this.#size
  }

  /** The roots of the perfect subtrees. `new CompactRange(size, peaks)` continues from them. */
  get peaks(): readonly TreeHash[] {
    return [...this.#peaks]
  }

  /**
   * Adds a leaf hash. As with the carries of a binary counter, two subtrees of equal size are joined into
   * one.
   */
  append(leaf: TreeHash): void {
    let hash = leaf
    for (let rest = this.#size; rest % 2 === 1; rest = (rest - 1) / 2) {
      hash = nodeHash(this.#peaks.pop()!, hash)
    }
    this.#peaks.push(hash)
    this.#size++
  }

  /** Returns the root of the tree so far. */
  root(): TreeHash {
    if (this.#peaks.length === 0) return emptyRoot()
    return this.#peaks.reduceRight((right, left) => nodeHash(left, right))
  }
}

/** The leaves from `from` up to, but not including, `to`. */
interface LeafRange {
  readonly from: number
  readonly to: number
}

/**
 * Returns the subtrees whose roots prove that leaf `index` is in the tree over a range (RFC 6962 §2.1.1).
 */
function pathRanges(index: number, { from, to }: LeafRange): LeafRange[] {
  if (to - from <= 1) return []
  const middle = from + largestPowerBelow(to - from)
  return index < middle
    ? [...pathRanges(index, { from, to: middle }), { from: middle, to }]
    : [...pathRanges(index, { from: middle, to }), { from, to: middle }]
}

/**
 * Returns the subtrees whose roots prove that the tree over the range extends the tree of its first
 * `first` leaves (RFC 6962 §2.1.2).
 */
function subproof(first: number, range: LeafRange, isWhole: boolean): LeafRange[] {
  const { from, to } = range
  if (first === to) return isWhole ? [] : [range]
  const middle = from + largestPowerBelow(to - from)
  return first <= middle
    ? [...subproof(first, { from, to: middle }, isWhole), { from: middle, to }]
    : [...subproof(first, { from: middle, to }, false), { from, to: middle }]
}

function largestPowerBelow(count: number): number {
  let power = 1
  while (power * 2 < count) power *= 2
  return power
}

/** The parameters of `verifyInclusion`. */
export interface InclusionClaim {
  readonly leaf: TreeHash
  readonly index: number
  readonly size: number
  readonly root: TreeHash
  readonly proof: readonly TreeHash[]
}

/**
 * Returns true if the proof shows that the leaf is at `index` in the tree with this root (RFC 9162
 * §2.1.3.2).
 */
export function verifyInclusion({ leaf, index, size, root, proof }: InclusionClaim): boolean {
  if (!isCount(index) || !isCount(size) || index >= size || !proof.every(isHash)) return false
  let node = index
  let last = size - 1
  let hash = leaf
  for (const sibling of proof) {
    if (last === 0) return false
    if (node % 2 === 1 || node === last) {
      hash = nodeHash(sibling, hash)
      while (node % 2 === 0 && node !== 0) [node, last] = [half(node), half(last)]
    } else hash = nodeHash(hash, sibling)
    node = half(node)
    last = half(last)
  }
  return last === 0 && isEqualHash(hash, root)
}

/** The parameters of `verifyConsistency`. */
export interface ConsistencyClaim {
  readonly first: number
  readonly second: number
  readonly firstRoot: TreeHash
  readonly secondRoot: TreeHash
  readonly proof: readonly TreeHash[]
}

/**
 * Returns true if the proof shows that the second tree is the first one with leaves appended (RFC 9162
 * §2.1.4.2).
 */
export function verifyConsistency(claim: ConsistencyClaim): boolean {
  const { first, second, firstRoot, secondRoot, proof } = claim
  if (!isCount(first) || !isCount(second) || first > second || !proof.every(isHash)) return false
  if (first === second) return proof.length === 0 && isEqualHash(firstRoot, secondRoot)
  if (first === 0) return proof.length === 0 && isEqualHash(firstRoot, emptyRoot())
  const path = isPowerOfTwo(first) ? [firstRoot, ...proof] : [...proof]
  if (path.length === 0) return false
  let node = first - 1
  let last = second - 1
  while (node % 2 === 1) [node, last] = [half(node), half(last)]
  let [before, after] = [path[0]!, path[0]!]
  for (const sibling of path.slice(1)) {
    if (last === 0) return false
    if (node % 2 === 1 || node === last) {
      before = nodeHash(sibling, before)
      after = nodeHash(sibling, after)
      while (node % 2 === 0 && node !== 0) [node, last] = [half(node), half(last)]
    } else after = nodeHash(after, sibling)
    node = half(node)
    last = half(last)
  }
  return last === 0 && isEqualHash(before, firstRoot) && isEqualHash(after, secondRoot)
}

/** True for equal hashes. Hashes are public, so the comparison need not take constant time. */
export function isEqualHash(a: TreeHash, b: TreeHash): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index])
}

// Sizes may exceed 2^31, where bit operations would overflow, so this is not `value >> 1`.
function half(value: number): number {
  return Math.floor(value / 2)
}

function isPowerOfTwo(value: number): boolean {
  while (value > 1 && value % 2 === 0) value /= 2
  return value === 1
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0
}

function isHash(value: TreeHash): boolean {
  return value instanceof Uint8Array && value.length === 32
}

/** Leaf hashes in log order, from a file or from memory. */
type LeafHashes = AsyncIterable<TreeHash> | Iterable<TreeHash>

/**
 * Computes the inclusion path of leaf `index` in the tree of `size` leaves, in one pass over the leaves.
 */
export function proveInclusion(
  leaves: LeafHashes,
  index: number,
  size: number,
): Promise<TreeHash[]> {
  return rootsOf(leaves, pathRanges(index, { from: 0, to: size }))
}

/**
 * Computes the consistency proof from the tree of `first` leaves to the tree of `second` leaves, in one
 * pass.
 */
export function proveConsistency(
  leaves: LeafHashes,
  first: number,
  second: number,
): Promise<TreeHash[]> {
  const isSame = first === 0 || first === second
  return rootsOf(leaves, isSame ? [] : subproof(first, { from: 0, to: second }, true))
}

/** Computes the roots of disjoint ranges of leaves, in the order of `ranges`, with O(log n) memory. */
async function rootsOf(leaves: LeafHashes, ranges: readonly LeafRange[]): Promise<TreeHash[]> {
  const inOrder = [...ranges].sort((a, b) => a.from - b.from)
  const roots = new Map<number, TreeHash>()
  let next = 0
  let index = 0
  let range = new CompactRange()
  for await (const leaf of leaves) {
    const nextLeaf = inOrder[next]
    if (nextLeaf === undefined) break
    if (index >= nextLeaf.from) range.append(leaf)
    if (++index === nextLeaf.to) {
      roots.set(nextLeaf.from, range.root())
      range = new CompactRange()
      next++
    }
  }
  return ranges.map(({ from }) => roots.get(from)!)
}
