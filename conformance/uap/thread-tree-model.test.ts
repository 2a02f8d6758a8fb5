/** Random operations on a tree, compared with a plain model of it after each of them. */
import { AgentState, ThreadTree } from '@skein/agents'
import { UserMessage } from '@skein/ai'
import fc from 'fast-check'
import { expect, test } from 'vitest'

interface Node {
  readonly parentId: string | null
  readonly name: string | undefined
  readonly children: string[]
  state: AgentState
}

const operation = fc.record({
  type: fc.constantFrom('branch', 'branch', 'checkout', 'set', 'restore'),
  at: fc.nat(30),
  name: fc.option(fc.constantFrom('', 'main', 'a'), { nil: undefined }),
  /** Which kind of state is set: what is new alone, everything, or something shorter. */
  kind: fc.constantFrom('delta', 'whole', 'short', 'empty'),
})

test('UAP-094 UAP-095 UAP-097 a node is added where it was asked for, and nothing else changes', () => {
  const runs = process.env['SKEIN_DEEP'] ? 2000 : 100
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 15 }), (operations) => {
      let count = 0
      const ids = () => `n${count++}`
      const first = AgentState.initial()
        .withMessage(new UserMessage('first'))
        .withStep(3)
        .withMetadata('k', 'v')
      let tree = new ThreadTree({ state: first, ids })
      let { nodes } = tree
      const model = new Map<string, Node>()
      model.set('n0', { parentId: null, name: undefined, children: [], state: first })
      let current = 'n0'
      for (const { type, at, name, kind } of operations) {
        const id = [...model.keys()][at % model.size]!
        const node = model.get(id)!
        if (type === 'branch') {
          const child = tree.branch(id, name)
          node.children.push(child)
          model.set(child, { parentId: id, name, children: [], state: node.state })
        } else if (type === 'checkout') tree.checkout((current = id))
        else if (type === 'set') {
          const said = new UserMessage(`${at}`)
          const whole = node.state.withMessage(said).withStep(at).withMetadata('n', at)
          const delta = AgentState.initial().withMessage(said).withMetadata('d', at)
          const states = {
            whole,
            delta,
            short: whole.withContext([said]),
            empty: AgentState.initial(),
          }
          nodes.get(id)!.state = node.state = states[kind]
        } else {
          tree = ThreadTree.fromJSON(JSON.parse(JSON.stringify(tree)), { ids })
          ;({ nodes } = tree)
          for (const [one, { state }] of nodes) {
            expect(state).toEqual(model.get(one)!.state)
            model.get(one)!.state = state
          }
        }
        expect([tree.root.id, tree.current.id]).toEqual(['n0', current])
        expect([tree.root, tree.current]).toEqual([nodes.get('n0'), nodes.get(current)])
        // The map that was read at the beginning shows nodes that were added since.
        const found = [...nodes].map(([key, { parentId, name: called, children, state }]) => {
          return [key, { parentId, name: called, children, state }]
        })
        expect(new Map(found as [string, Node][])).toEqual(model)
        for (const [key, { state }] of nodes) expect(state).toBe(model.get(key)!.state)
        // Whatever the messages are, all else is that of the current node.
        const { messages: _, id: _id, ...history } = tree.history().toJSON()
        const { messages: _own, id: _ownId, ...own } = tree.current.state.toJSON()
        expect(history).toEqual(own)
      }
    }),
    { seed: 94, numRuns: runs },
  )
})
