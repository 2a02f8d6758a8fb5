/**
 * A conversation that branches: each node of a tree holds a state, `history()` is the way from the root
 * to the node you are at.
 *
 * Prints:
 *
 *     at alternative: First / one / Alternative path / two
 *     at the root: First / one
 *     at deeper: First / one / Alternative path / two / Deeper / three
 *     restored: 3 nodes, at deeper
 */

// #region program
import { agent, AgentState, ThreadTree } from '@skein/agents'
import { says, scripted } from '@skein/ai/testing'

const helper = agent({ model: scripted([says('one'), says('two'), says('three')]) })
const show = (state: AgentState): string => state.messages.map(({ text }) => text).join(' / ')

const tree = new ThreadTree()
const { state: s1 } = await helper.generate('First', tree.history())
tree.current.state = s1

const altId = tree.branch(tree.current.id, 'alternative')
tree.checkout(altId)
const { state: s2 } = await helper.generate('Alternative path', tree.history())
tree.current.state = s2
console.log(`at ${tree.current.name}: ${show(tree.history())}`)

tree.checkout(tree.root.id)
console.log(`at the root: ${show(tree.history())}`)

tree.checkout(tree.branch(altId, 'deeper'))
tree.current.state = (await helper.generate('Deeper', tree.history())).state
console.log(`at ${tree.current.name}: ${show(tree.history())}`)

const restored = ThreadTree.fromJSON(JSON.parse(JSON.stringify(tree)))
console.log(`restored: ${restored.nodes.size} nodes, at ${restored.current.name}`)
// #endregion program
