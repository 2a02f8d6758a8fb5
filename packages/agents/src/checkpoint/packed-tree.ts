import { isPlainObject } from '@skein/base'
import { invalidUse } from '../contract/agent-error.ts'
import type { AgentStateJSON } from '../state/state-types.ts'
import type { ThreadNodeJSON, ThreadTree, ThreadTreeJSON } from '../state/thread-tree.ts'

/** The lists of a state that mostly grow at their end. */
export const LISTS = ['messages', 'reasoning', 'subagentTraces'] as const
type GrowingList = (typeof LISTS)[number]
type Lists = { readonly [List in GrowingList]: readonly unknown[] }

/** The most list items that an unpacked tree may have in all, because a short text can expand to very many items. */
const MAX_TREE_ITEMS = 10_000_000

/**
 * A tree of states in which a node leaves out the list items that its parent's state has too; `shared` counts
 * the items that were left out.
 */
type PackedTree = Omit<ThreadTreeJSON, 'nodes'> & {
  readonly nodes: readonly (ThreadNodeJSON & {
    readonly shared?: { readonly [List in GrowingList]?: number }
  })[]
}

/**
 * Returns the JSON of a tree without the repetitions: UAP §12.2 writes the whole conversation into each node,
 * here a node has what it adds to its parent. Read it with `ThreadTree.fromJSON(unpackTree(json))`.
 */
export function packTree(tree: ThreadTree | ThreadTreeJSON): PackedTree {
  const json = 'toJSON' in tree ? tree.toJSON() : tree
  const before = new Map<string, Lists>()
  const nodes = json.nodes.map((node) => {
    const parent = before.get(node.parentId ?? '')
    const lists = listsOf(node.state)
    before.set(node.id, lists)
    const shared: { [List in GrowingList]?: number } = {}
    const rest: Partial<Record<GrowingList, readonly unknown[]>> = {}
    for (const name of LISTS) {
      const count = sharedItems(lists[name], parent?.[name] ?? [])
      if (count === 0) continue
      shared[name] = count
      rest[name] = lists[name].slice(count)
    }
    if (Object.keys(shared).length === 0) return node
    // The cast is safe, because lists were only shortened.
    return { ...node, state: { ...node.state, ...rest } as AgentStateJSON, shared }
  })
  return { ...json, nodes }
}

/**
 * Reverses `packTree`: returns the JSON of UAP §12.2, in which every state is complete. The input is
 * untrusted: counts that do not fit the parent throw INVALID_REQUEST. `ThreadTree.fromJSON` checks everything
 * else.
 */
export function unpackTree(json: unknown): ThreadTreeJSON {
  if (!isPlainObject(json) || !Array.isArray(json['nodes']))
    throw invalidUse('This is not a packed thread tree: nodes is not a list.')
  const before = new Map<unknown, Lists>()
  let items = 0
  const nodes = json['nodes'].map((node: unknown, index) => {
    if (!isPlainObject(node) || !isPlainObject(node['state'])) return node
    const { shared, ...fields } = node
    const at = `nodes[${index}].shared`
    const lists = unpackLists(listsOf(node['state']), before.get(node['parentId']), shared, at)
    for (const name of LISTS) items += lists[name].length
    if (items > MAX_TREE_ITEMS)
      throw invalidUse(`This packed thread tree has more than ${MAX_TREE_ITEMS} items.`)
    before.set(node['id'], lists)
    if (shared === undefined) return node
    const whole = Object.keys(shared as object).map((name) => [name, lists[name as GrowingList]])
    return { ...fields, state: { ...node['state'], ...Object.fromEntries(whole) } }
  })
  // Not checked further here: the result is made to be read by `ThreadTree.fromJSON`.
  return { ...json, nodes } as unknown as ThreadTreeJSON
}

function unpackLists(own: Lists, parent: Lists | undefined, shared: unknown, at: string): Lists {
  if (shared === undefined) return own
  if (!isPlainObject(shared)) throw invalidUse(`${at} is not an object.`)
  const lists: { [List in GrowingList]: readonly unknown[] } = { ...own }
  for (const [name, count] of Object.entries(shared)) {
    const list = LISTS.find((one) => one === name)
    const above = (list && parent?.[list]) ?? []
    const isCount = typeof count === 'number' && Number.isInteger(count) && count >= 0
    if (!list || !isCount || count > above.length)
      throw invalidUse(
        `${at}.${name} is ${JSON.stringify(count)}, but the parent before this node has ${above.length} such items.`,
      )
    lists[list] = [...above.slice(0, count), ...own[list]]
  }
  return lists
}

function listsOf(state: object): Lists {
  const { messages, reasoning, subagentTraces } = state as { [List in GrowingList]?: unknown }
  const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
  return {
    messages: list(messages),
    reasoning: list(reasoning),
    subagentTraces: list(subagentTraces),
  }
}

/** Counts the items at the beginning that both lists have. */
export function sharedItems(own: readonly unknown[], other: readonly unknown[]): number {
  let count = 0
  while (count < own.length && count < other.length && isSame(own[count], other[count])) count++
  return count
}

/** True for identical objects (states of one conversation share their messages in memory) or for equal JSON. */
export function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one) === JSON.stringify(other)
}
