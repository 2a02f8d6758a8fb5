import { invalidRequest } from './agent-error.ts'
import { AgentState, type AgentStateJSON } from './state.ts'

export interface ThreadNodeJSON {
  readonly id: string
  readonly parentId: string | null
  readonly name?: string
  readonly state: AgentStateJSON
  readonly children: readonly string[]
}

export interface ThreadNodeInit {
  readonly id: string
  readonly parentId: string | null
  readonly name?: string
  readonly state: AgentState
  readonly children?: readonly string[]
}

/** One place in a tree of conversations (UAP §7.1). Set `state` to what happened there. */
export class ThreadNode {
  readonly id: string
  /** Null for the root. */
  readonly parentId: string | null
  declare readonly name?: string
  readonly #children: string[]
  #state: AgentState

  /** Nodes are made by the tree. */
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

  /** Ids of the nodes that branch from here, oldest first. */
  get children(): readonly string[] {
    return Object.freeze([...this.#children])
  }

  /** For the tree that holds both. */
  static link(parent: ThreadNode, childId: string): void {
    parent.#children.push(childId)
  }

  toJSON(): ThreadNodeJSON {
    const { id, parentId, name, state, children } = this
    return { id, parentId, ...(name !== undefined && { name }), state: state.toJSON(), children }
  }
}

function checked(state: AgentState): AgentState {
  if (state instanceof AgentState) return state
  throw invalidRequest('The state of a node is an AgentState.', 'See AgentState.fromJSON().')
}
