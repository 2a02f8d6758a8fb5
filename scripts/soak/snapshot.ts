import { readFileSync } from 'node:fs'

/** What the objects of one constructor hold by themselves. */
export interface ConstructorTotal {
  readonly name: string
  readonly count: number
  readonly bytes: number
}

interface Snapshot {
  readonly snapshot: {
    readonly meta: {
      readonly node_fields: readonly string[]
      readonly node_types: readonly [readonly string[], ...unknown[]]
    }
  }
  readonly nodes: readonly number[]
  readonly strings: readonly string[]
}

/** Sums up a heap snapshot by constructor, largest first. What is no object is summed up by its type. */
export function summarise(path: string): ConstructorTotal[] {
  const { snapshot, nodes, strings } = JSON.parse(readFileSync(path, 'utf8')) as Snapshot // V8's format
  const { node_fields: fields, node_types: types } = snapshot.meta
  const at = (name: string): number => fields.indexOf(name)
  const [typeAt, nameAt, sizeAt] = [at('type'), at('name'), at('self_size')]
  const totals = new Map<string, { count: number; bytes: number }>()
  for (let node = 0; node < nodes.length; node += fields.length) {
    const type = types[0][nodes[node + typeAt]!]!
    const name = type === 'object' ? strings[nodes[node + nameAt]!]! : `(${type})`
    const total = totals.get(name) ?? { count: 0, bytes: 0 }
    total.count += 1
    total.bytes += nodes[node + sizeAt]!
    totals.set(name, total)
  }
  return [...totals]
    .map(([name, total]) => ({ name, ...total }))
    .toSorted((a, b) => b.bytes - a.bytes)
}
