/** What points to what, by name. */
export type Graph = ReadonlyMap<string, ReadonlySet<string>>

/** Builds a graph from its edges; an edge from a node to itself is left out. */
export function graphOf(edges: Iterable<readonly [from: string, to: string]>): Graph {
  const graph = new Map<string, Set<string>>()
  for (const [from, to] of edges)
    if (from !== to) graph.set(from, (graph.get(from) ?? new Set()).add(to))
  return graph
}

/**
 * The sets of nodes that all reach each other (strongly connected components of two or more nodes), largest
 * first, their nodes sorted. A graph without any has no cycle.
 */
export function findKnots(graph: Graph): string[][] {
  const reachable = new Map<string, Set<string>>()
  for (const start of graph.keys()) {
    const nodes = new Set<string>()
    const open = [...graph.get(start)!]
    for (let node = open.pop(); node !== undefined; node = open.pop()) {
      if (nodes.has(node)) continue
      nodes.add(node)
      open.push(...(graph.get(node) ?? []))
    }
    reachable.set(start, nodes)
  }
  const knots: string[][] = []
  const listed = new Set<string>()
  for (const [start, nodes] of reachable) {
    if (listed.has(start) || !nodes.has(start)) continue
    const knot = [...nodes].filter((node) => reachable.get(node)?.has(start)).toSorted()
    for (const node of knot) listed.add(node)
    knots.push(knot)
  }
  return knots.toSorted((a, b) => b.length - a.length)
}

/** A shortest way from a node back to itself: `[a, b, a]`; undefined if there is none. */
export function cycleThrough(graph: Graph, start: string): string[] | undefined {
  const previous = new Map<string, string>()
  const queue = [start]
  for (let node = queue.shift(); node !== undefined; node = queue.shift()) {
    for (const next of graph.get(node) ?? []) {
      if (next === start) {
        const cycle = [start]
        for (let back = node; back !== start; back = previous.get(back)!) cycle.unshift(back)
        return [start, ...cycle]
      }
      if (previous.has(next)) continue
      previous.set(next, node)
      queue.push(next)
    }
  }
  return undefined
}
