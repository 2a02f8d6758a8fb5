import { uuidV4, type IdSource } from '@skein/base'
import type { Message } from '@skein/ai'
import { invalidRequest } from './agent-error.ts'
import { AgentState } from './state.ts'
import { ThreadNode, type ThreadNodeJSON } from './thread-node.ts'
import { readTreeJSON } from './thread-tree-json.ts'

/** A tree as JSON (UAP §12.2). */
export interface ThreadTreeJSON {
  readonly rootId: string
  readonly currentId: string
  readonly nodes: readonly ThreadNodeJSON[]
}

export interface ThreadTreeOptions {
  /** Of the root. Default: an empty one. */
  readonly state?: AgentState
  /** Where the ids of nodes are made. Default: UUIDv4. */
  readonly ids?: IdSource
}

/**
 * Conversations that branch (UAP §7).
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

  /** Takes untrusted JSON: what is not a tree is refused. */
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

  /** The node that `checkout` chose; at first the root. */
  get current(): ThreadNode {
    return this.#current
  }

  /** All nodes by id. */
  get nodes(): ReadonlyMap<string, ThreadNode> {
    return this.#nodes
  }

  /** A new node below another, with the same state. Gives its id; `current` stays. */
  branch(fromId: string, name?: string): string {
    const { state } = this.#node(fromId)
    const node = new ThreadNode({
      id: this.#ids(),
      parentId: fromId,
      state,
      ...(name !== undefined && { name }),
    })
    return this.#add(node).id
  }

  checkout(nodeId: string): void {
    this.#current = this.#node(nodeId)
  }

  /**
   * The current node's state with the messages from the root to it. Nodes usually hold the whole
   * conversation up to them: a node that shares a message with what came before replaces it, also
   * when it was shortened; any other is added (A52).
   */
  history(): AgentState {
    const { state } = this.#current
    const messages = this.#path().reduce(withNode, [])
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
    if (this.#nodes.has(node.id)) throw invalidRequest(`The tree has a node "${node.id}" already.`)
    if (node.parentId !== null) ThreadNode.link(this.#node(node.parentId), node.id)
    this.#nodes.set(node.id, node)
    return node
  }

  #node(id: string): ThreadNode {
    const node = this.#nodes.get(id)
    if (node) return node
    throw invalidRequest(`The tree has no node ${JSON.stringify(id)}.`, 'See `tree.nodes`.')
  }

  /** Root first. */
  #path(): ThreadNode[] {
    const path = [this.#current]
    for (let { parentId } = this.#current; parentId !== null;) {
      const node = this.#node(parentId)
      path.push(node)
      parentId = node.parentId
    }
    return path.reverse()
  }
}

function withNode(before: readonly Message[], { state }: ThreadNode): readonly Message[] {
  if (before.length === 0) return state.messages
  const ids = new Set(before.map(({ id }) => id))
  const goesOn = state.messages.some(({ id }) => ids.has(id))
  return goesOn ? state.messages : [...before, ...state.messages]
}
