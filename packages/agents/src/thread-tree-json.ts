import { isPlainObject } from '@skein/base'
import { invalidRequest } from './agent-error.ts'
import { AgentState } from './state.ts'
import { ThreadNode } from './thread-node.ts'

/** The nodes of untrusted JSON, in its order. */
export function readTreeJSON(json: unknown): {
  root: ThreadNode
  current: ThreadNode
  nodes: ReadonlyMap<string, ThreadNode>
} {
  if (!isPlainObject(json)) throw invalid('it is not an object')
  const { rootId, currentId } = json
  if (!Array.isArray(json['nodes'])) throw invalid('nodes is not a list')
  const list = json['nodes'].map(readNode)
  const nodes = new Map(list.map((node) => [node.id, node]))
  if (nodes.size < list.length) throw invalid('two nodes have one id')
  const root = nodes.get(rootId as string) // what is not an id names no node
  if (!root || root.parentId !== null) throw invalid('rootId does not name a root')
  const current = nodes.get(currentId as string)
  if (!current) throw invalid('currentId does not name a node')
  if (countBelow(root, nodes) < nodes.size) throw invalid('not all nodes hang on the root')
  return { root, current, nodes }
}

function readNode(value: unknown, index: number): ThreadNode {
  const at = `nodes[${index}]`
  if (!isPlainObject(value)) throw invalid(`${at} is not an object`)
  const { id, parentId, name, state, children } = value
  if (typeof id !== 'string' || id === '') throw invalid(`${at}.id is not a non-empty string`)
  if (parentId !== null && typeof parentId !== 'string') throw invalid(`${at}.parentId is no id`)
  if (name !== undefined && typeof name !== 'string') throw invalid(`${at}.name is not a string`)
  if (!Array.isArray(children) || new Set(children).size < children.length)
    throw invalid(`${at}.children is not a list of different ids`)
  return new ThreadNode({
    id,
    parentId,
    children,
    state: AgentState.fromJSON(state),
    ...(name !== undefined && { name }),
  })
}

/** Parents and children have to agree; then no node comes twice, and there are no cycles. */
function countBelow(root: ThreadNode, nodes: ReadonlyMap<string, ThreadNode>): number {
  const found = [root]
  for (let index = 0; index < found.length; index++) {
    const { id, children } = found[index]!
    for (const childId of children) {
      const child = nodes.get(childId)
      if (child?.parentId !== id)
        throw invalid(`the node "${id}" names ${JSON.stringify(childId)}, which is no child of it`)
      found.push(child)
    }
  }
  return found.length
}

function invalid(problem: string): Error {
  return invalidRequest(`This is not the JSON of a thread tree: ${problem}.`)
}
