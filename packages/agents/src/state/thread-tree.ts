import { type IdSource, uuidV4 } from '@skein/base'
import type { Message } from '@skein/ai'
import { invalidUse } from '../contract/agent-error.ts'
import { anId, misfit, type DataRule } from './data-rule.ts'
import type { AgentStateJSON } from './state-types.ts'
import { AgentState } from './state.ts'

/** A tree as JSON (UAP §12.2). */
export interface ThreadTreeJSON {
  readonly rootId: string
  readonly currentId: string
  readonly nodes: readonly ThreadNodeJSON[]
}

/** A node as JSON (UAP §12.2). */
export type ThreadNodeJSON = {
  readonly id: string
  readonly parentId: string | null
  readonly name?: string
  readonly state: AgentStateJSON
  readonly children: readonly string[]
}

/** Options of a new tree. */
export interface ThreadTreeOptions {
  /** The state of the root. Default: an empty one. */
  readonly state?: AgentState
  /** Makes the ids of nodes. Default: UUIDv4. */
  readonly ids?: IdSource
}

/** The fields of a new node. */
export interface ThreadNodeInit {
  readonly id: string
  readonly parentId: string | null
  readonly name?: string
  readonly state: AgentState
  readonly children?: readonly string[]
}

/**
 * Conversations with branches (UAP §7).
 *
 *     const tree = new ThreadTree()
 *     tree.current.state = (await coder.generate('First', tree.history())).state
 *     tree.checkout(tree.branch(tree.current.id, 'alternative'))
 */
export class ThreadTree {
  readonly #nodes = new Map<string, ThreadNode>()
  #ids: IdSource
  #root: ThreadNode
  #current: ThreadNode

  constructor({ state = AgentState.initial(), ids = uuidV4 }: ThreadTreeOptions = {}) {
    this.#ids = ids
    this.#root = this.#current = this.#add(new ThreadNode({ id: ids(), parentId: null, state }))
  }

  /** Reads untrusted JSON. Throws INVALID_REQUEST if it is not a tree. */
  static fromJSON(
    json: unknown,
    { ids = uuidV4 }: Pick<ThreadTreeOptions, 'ids'> = {},
  ): ThreadTree {
    const { root, current, nodes } = readTreeJSON(json)
    const tree = new ThreadTree({ ids: () => root.id })
    tree.#ids = ids
    for (const node of nodes.values()) tree.#nodes.set(node.id, node)
    tree.#root = root
    tree.#current = current
    return tree
  }

  get root(): ThreadNode {
    return this.#root
  }

  /** The node chosen by `checkout`; the root at first. */
  get current(): ThreadNode {
    return this.#current
  }

  /** All nodes by id. */
  get nodes(): ReadonlyMap<string, ThreadNode> {
    return this.#nodes
  }

  /** The newest node of each branch: all nodes without children, oldest first. */
  get leaves(): readonly ThreadNode[] {
    return [...this.#nodes.values()].filter(({ children }) => children.length === 0)
  }

  /** Adds a node below another, with the same state, and returns its id. `current` does not change. */
  branch(fromId: string, name?: string): string {
    const { state } = this.#node(fromId)
    return this.#add(new ThreadNode({ id: this.#ids(), parentId: fromId, state, name })).id
  }

  /** Makes a node the current one. */
  checkout(nodeId: string): void {
    this.#current = this.#node(nodeId)
  }

  /**
   * Returns the current node's state with the messages from the root to it. A node usually contains the whole
   * conversation: then its messages, even if shortened, replace those of its ancestors. A node that shares no
   * message with its ancestors adds its messages to theirs.
   */
  history(): AgentState {
    const path = [this.#current]
    for (let { parentId } = this.#current; parentId !== null;) {
      const node = this.#node(parentId)
      path.push(node)
      parentId = node.parentId
    }
    const { state } = this.#current
    const messages = path.reduceRight<readonly Message[]>((before, node) => {
      const ids = new Set(before.map(({ id }) => id))
      const continues = node.state.messages.some(({ id }) => ids.has(id))
      return continues || before.length === 0
        ? node.state.messages
        : [...before, ...node.state.messages]
    }, [])
    const isAll =
      messages.length === state.messages.length &&
      messages.every((message, index) => message === state.messages[index])
    return isAll ? state : state.withContext(messages)
  }

  toJSON(): ThreadTreeJSON {
    const nodes = [...this.#nodes.values()].map((node) => node.toJSON())
    return { rootId: this.#root.id, currentId: this.#current.id, nodes }
  }

  #add(node: ThreadNode): ThreadNode {
    if (this.#nodes.has(node.id)) throw invalidUse(`The tree has a node "${node.id}" already.`)
    if (node.parentId !== null) ThreadNode.link(this.#node(node.parentId), node.id)
    this.#nodes.set(node.id, node)
    return node
  }

  #node(id: string): ThreadNode {
    const node = this.#nodes.get(id)
    if (node) return node
    throw invalidUse(`The tree has no node ${JSON.stringify(id)}.`, 'See `tree.nodes`.')
  }
}

/** One node in a tree of conversations (UAP §7.1). After a run, set `state` to the state it returned. */
export class ThreadNode {
  readonly id: string
  /** Null for the root. */
  readonly parentId: string | null
  declare readonly name?: string
  readonly #children: string[]
  #state: AgentState

  /** Called by the tree; use `tree.branch()` to create a node. */
  constructor(init: ThreadNodeInit) {
    this.id = init.id
    this.parentId = init.parentId
    if (init.name !== undefined) this.name = init.name
    this.#children = [...(init.children ?? [])]
    this.#state = checked(init.state)
  }

  get state(): AgentState {
    return this.#state
  }

  set state(state: AgentState) {
    this.#state = checked(state)
  }

  /** Ids of the child nodes, oldest first. */
  get children(): readonly string[] {
    return Object.freeze([...this.#children])
  }

  /** Adds a child's id to its parent. Called only by the tree that contains both. */
  static link(parent: ThreadNode, childId: string): void {
    parent.#children.push(childId)
  }

  toJSON(): ThreadNodeJSON {
    const { id, parentId, name, children } = this
    const state = this.state.toJSON()
    return name === undefined
      ? { id, parentId, state, children }
      : { id, parentId, name, state, children }
  }
}

function checked(state: AgentState): AgentState {
  if (state instanceof AgentState) return state
  throw invalidUse('The state of a node is an AgentState.', 'See AgentState.fromJSON().')
}

/** Reads a tree from untrusted JSON: its root, its current node and all nodes in their given order. */
function readTreeJSON(json: unknown): {
  root: ThreadNode
  current: ThreadNode
  nodes: ReadonlyMap<string, ThreadNode>
} {
  const problem = misfit(json, treeRule)
  if (problem !== undefined) throw invalidTree(problem)
  const { rootId, currentId, nodes: given } = json as ThreadTreeJSON
  const list = given.map(
    (node) => new ThreadNode({ ...node, state: AgentState.fromJSON(node.state) }),
  )
  const nodes = new Map(list.map((node) => [node.id, node]))
  if (nodes.size < list.length) throw invalidTree('two nodes have one id')
  const root = nodes.get(rootId) // undefined if `rootId` is not a string
  if (!root || root.parentId !== null) throw invalidTree('rootId does not name a root')
  const current = nodes.get(currentId)
  if (!current) throw invalidTree('currentId does not name a node')
  // Each child must name its parent. Then no node is reached twice, so there is no cycle; a node that is not
  // reached is not connected to the root.
  const reachable = [root]
  for (let index = 0; index < reachable.length; index++) {
    const { id, children } = reachable[index]!
    for (const childId of children) {
      const child = nodes.get(childId)
      if (child?.parentId !== id)
        throw invalidTree(
          `the node "${id}" names ${JSON.stringify(childId)}, which is no child of it`,
        )
      reachable.push(child)
    }
  }
  if (reachable.length < nodes.size) throw invalidTree('not all nodes hang on the root')
  return { root, current, nodes }
}

const treeRule: DataRule = {
  nodes: [
    {
      id: anId,
      parentId: (id) => (id === null ? undefined : anId(id)),
      'name?': 'string',
      children: (ids) =>
        Array.isArray(ids) && new Set(ids).size === ids.length
          ? undefined
          : 'a list of different ids',
    },
  ],
}

function invalidTree(problem: string): Error {
  return invalidUse(`This is not the JSON of a thread tree: ${problem}.`)
}
