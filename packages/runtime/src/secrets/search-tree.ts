/**
 * An Aho–Corasick automaton: reads a text one code unit at a time and finds, at each position, the longest
 * pattern that ends there. Node 0 is the start.
 */
export interface SearchTree {
  step(node: number, unit: number): number
  /** Length of the longest pattern that ends at this node; 0 when none does. */
  matchLength(node: number): number
  /** How many of the last code units read may be the beginning of a pattern that is not complete yet. */
  openLength(node: number): number
}

/** Builds the automaton for the patterns, in time linear in their total length. */
export function searchTree(patterns: Iterable<string>): SearchTree {
  const nodes = packed(grow(patterns))
  const { failure, match, open } = link(nodes)

  function step(from: number, unit: number): number {
    let node = from
    for (;;) {
      const next = childOf(nodes, node, unit)
      if (next > 0) return next
      if (node === 0) return 0
      node = failure[node]!
    }
  }

  return {
    step,
    matchLength: (node) => match[node]!,
    openLength: (node) => open[node]!,
  }
}

/**
 * A trie stored in flat lists. The children of a node are a linked list, because most nodes have one child;
 * the root has a table.
 */
interface Nodes<List = ArrayLike<number>> {
  readonly unit: List
  readonly depth: List
  readonly parent: List
  readonly child: List
  readonly sibling: List
  /** 1 for a node at which a pattern ends, else 0. */
  readonly isEnd: List
  readonly first: Map<number, number>
  /**
   * The children of the root, by code unit, for units below 256. Most units begin no pattern, and one
   * array access is enough to see that.
   */
  readonly firstByte: Int32Array
}

function grow(patterns: Iterable<string>): Nodes<number[]> {
  const nodes: Nodes<number[]> = {
    unit: [0],
    depth: [0],
    parent: [0],
    child: [0],
    sibling: [0],
    isEnd: [0],
    first: new Map(),
    firstByte: new Int32Array(256),
  }
  for (const pattern of patterns) {
    let node = 0
    for (let i = 0; i < pattern.length; i++) {
      const unit = pattern.charCodeAt(i)
      node = childOf(nodes, node, unit) || addChild(nodes, node, unit)
    }
    if (node > 0) nodes.isEnd[node] = 1
  }
  return nodes
}

function childOf(nodes: Nodes, node: number, unit: number): number {
  if (node === 0) return unit < 256 ? nodes.firstByte[unit]! : (nodes.first.get(unit) ?? 0)
  let child = nodes.child[node]!
  while (child > 0 && nodes.unit[child] !== unit) child = nodes.sibling[child]!
  return child
}

function addChild(nodes: Nodes<number[]>, parent: number, unit: number): number {
  const node = nodes.unit.push(unit) - 1
  nodes.depth.push(nodes.depth[parent]! + 1)
  nodes.parent.push(parent)
  nodes.child.push(0)
  nodes.sibling.push(nodes.child[parent]!)
  nodes.isEnd.push(0)
  nodes.child[parent] = node
  if (parent === 0 && unit < 256) nodes.firstByte[unit] = node
  else if (parent === 0) nodes.first.set(unit, node)
  return node
}

/** Copies the nodes into typed arrays, which are read several times faster. */
function packed({ first, firstByte, ...lists }: Nodes): Nodes {
  const { unit, depth, parent, child, sibling, isEnd } = lists
  return {
    unit: Uint16Array.from(unit),
    depth: Int32Array.from(depth),
    parent: Int32Array.from(parent),
    child: Int32Array.from(child),
    sibling: Int32Array.from(sibling),
    isEnd: Uint8Array.from(isEnd),
    first,
    firstByte,
  }
}

interface Links {
  readonly failure: Int32Array
  readonly match: Int32Array
  readonly open: Int32Array
}

/**
 * Computes three values for each node: `failure`, the node at which the search continues when there is no
 * child for a unit (the longest suffix of the text so far that begins a pattern), `match`, the result of
 * `matchLength`, and `open`, the result of `openLength`.
 */
function link(nodes: Nodes): Links {
  const size = nodes.unit.length
  const failure = new Int32Array(size)
  const match = new Int32Array(size)
  const open = new Int32Array(size)
  // All nodes except the root, ordered by depth.
  const order: number[] = []
  for (let child = nodes.child[0]!; child > 0; child = nodes.sibling[child]!) order.push(child)
  for (let i = 0; i < order.length; i++) {
    for (let child = nodes.child[order[i]!]!; child > 0; child = nodes.sibling[child]!)
      order.push(child)
  }
  for (const node of order) {
    if (nodes.depth[node]! > 1) {
      let at = failure[nodes.parent[node]!]!
      while (at > 0 && childOf(nodes, at, nodes.unit[node]!) === 0) at = failure[at]!
      failure[node] = childOf(nodes, at, nodes.unit[node]!)
    }
    const fallback = failure[node]!
    match[node] = nodes.isEnd[node] === 1 ? nodes.depth[node]! : match[fallback]!
    open[node] = nodes.child[node]! > 0 ? nodes.depth[node]! : open[fallback]!
  }
  return { failure, match, open }
}
