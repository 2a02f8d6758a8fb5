import fc from 'fast-check'
import { expect, test } from 'vitest'
import { planChunks } from './chunks.ts'
import type { Module } from './chunks.ts'

/** Modules by name; one that begins with `n` is for Node alone, one that begins with `p` imports a package. */
function planOf(
  entries: readonly string[],
  graph: Readonly<Record<string, readonly string[]>>,
  bytes: Readonly<Record<string, number>> = {},
  main?: string,
): ReadonlyMap<string, string> {
  return planChunks(entries, (id) => moduleOf(id, graph[id] ?? [], bytes[id]), main)
}

function moduleOf(id: string, imports: readonly string[], bytes = 100): Module {
  const packages = id.startsWith('p') ? ['@other/package'] : []
  return { bytes, imports, lazyImports: [], isPortable: !id.startsWith('n'), packages }
}

test('what one entry loads stays with it; what two load shares a chunk', () => {
  const plan = planOf(['a', 'b'], { a: ['own', 'both'], b: ['both', 'more'], both: ['more'] })
  expect([...plan.keys()].toSorted()).toEqual(['both', 'more'])
  expect(new Set(plan.values()).size).toBe(1)
})

test('a large module is not forced on an entry that does not need it', () => {
  const graph = { a: ['small', 'large'], b: ['small', 'large'], c: ['small'] }
  const small = planOf(['a', 'b', 'c'], graph)
  expect(small.get('small')).toBe(small.get('large'))
  const large = planOf(['a', 'b', 'c'], graph, { large: 10_000_000 })
  expect(large.get('small')).not.toBe(large.get('large'))
})

test('no entry loads another package only because it shares a chunk', () => {
  const graph = { a: ['p1', 'shared'], b: ['p1', 'shared'], help: ['shared'] }
  const plan = planOf(['a', 'b', 'help'], graph)
  expect(plan.get('p1')).not.toBe(plan.get('shared'))
  const all = planOf(['a', 'b', 'help'], { ...graph, help: ['p2', 'shared'] })
  expect(all.get('p1')).toBe(all.get('shared'))
})

test('an entry for browsers never loads what only Node has', () => {
  const graph = { a: ['n1', 'shared'], b: ['n1', 'shared'], browser: ['shared'] }
  const plan = planOf(['a', 'b', 'browser'], graph)
  expect(plan.get('n1')).not.toBe(plan.get('shared'))
})

test('what the main entry loads is one chunk, except where an entry for browsers would load it', () => {
  const graph = { a: ['m1', 'm2', 'm3'], b: ['m1'], c: ['m2', 'm4'], d: ['m4'] }
  const large = { m1: 200_000, m2: 200_000, m3: 200_000, m4: 200_000 }
  const chunksOf = (plan: ReadonlyMap<string, string>): Set<string | undefined> =>
    new Set(['m1', 'm2', 'm3'].map((id) => plan.get(id)))
  expect(chunksOf(planOf(['a', 'b', 'c', 'd'], graph, large)).size).toBe(3)
  const plan = planOf(['a', 'b', 'c', 'd'], graph, large, 'a')
  expect(chunksOf(plan).size).toBe(1)
  expect(plan.get('m4')).not.toBe(plan.get('m1'))
  const few = planOf(['a', 'b'], { a: ['m1', 'm2'], b: ['m1'] }, large, 'a')
  expect([few.has('m1'), few.has('m2')]).toEqual([true, false]) // the main entry would not load fewer files
  const forNode = { ...graph, a: ['n1', 'm1', 'm2', 'm3'] }
  expect(chunksOf(planOf(['a', 'b', 'c', 'd'], forNode, large, 'a')).size).toBe(3)
})

test('chunks never import each other in a circle, and each module has one place', () => {
  const edges = fc.array(fc.tuple(fc.nat(11), fc.nat(11)), { maxLength: 40 })
  fc.assert(
    fc.property(
      edges,
      fc.array(fc.nat(300_000), { minLength: 12, maxLength: 12 }),
      fc.boolean(),
      (all, bytes, hasMain) => {
        // Imports lead from a lower to a higher number; 0 to 3 are the entries.
        const graph: Record<string, string[]> = {}
        for (const [a, b] of all)
          if (a !== b) (graph[`m${Math.min(a, b)}`] ??= []).push(`m${Math.max(a, b)}`)
        const sizes = Object.fromEntries(bytes.map((size, index) => [`m${index}`, size]))
        const plan = planOf(['m0', 'm1', 'm2', 'm3'], graph, sizes, hasMain ? 'm0' : undefined)
        const imports = new Map<string, Set<string>>()
        for (const [id, chunk] of plan) {
          const others = (graph[id] ?? []).map((to) => plan.get(to)!).filter((to) => to !== chunk)
          imports.set(chunk, new Set([...(imports.get(chunk) ?? []), ...others]))
        }
        const reaches = (from: string, to: string, seen = new Set<string>()): boolean =>
          [...(imports.get(from) ?? [])].some(
            (next) => next === to || (!seen.has(next) && reaches(next, to, seen.add(next))),
          )
        for (const chunk of imports.keys()) expect(reaches(chunk, chunk)).toBe(false)
      },
    ),
  )
})
