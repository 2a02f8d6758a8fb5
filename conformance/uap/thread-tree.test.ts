import { AgentState, ThreadNode, ThreadTree } from '@skein/agents'
import { scriptedAgent } from '@skein/agents/testing'
import { AssistantMessage, UserMessage } from '@skein/ai'
import { says } from '@skein/ai/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { uuidV4 } from './support/state.ts'

const texts = ({ messages }: AgentState): string[] => messages.map(({ text }) => text)
const said = (...lines: string[]): AgentState =>
  AgentState.initial().withMessages(lines.map((line) => new UserMessage(line)))

test('UAP-093 UAP-033 a new tree is its root; nodes have UUIDs and are found by id', () => {
  const tree = new ThreadTree()
  expect(tree.current).toBe(tree.root)
  expect(tree.root).toBeInstanceOf(ThreadNode)
  expect([tree.root.parentId, tree.root.children, tree.root.name]).toEqual([null, [], undefined])
  expect(tree.root.id).toMatch(uuidV4)
  expect(tree.root.state.messages).toEqual([])
  expect(new Map(tree.nodes)).toEqual(new Map([[tree.root.id, tree.root]]))
  expect(new ThreadTree({ state: said('a') }).history().messages[0]?.text).toBe('a')
  const ids = [tree.branch(tree.root.id), tree.branch(tree.root.id)]
  for (const id of ids) expect(id).toMatch(uuidV4)
  expect(new Set([tree.root.id, ...ids]).size).toBe(3)
})

test('UAP-033 a tree that was read from JSON continues with UUIDs of version 4', () => {
  const tree = ThreadTree.fromJSON(JSON.parse(JSON.stringify(new ThreadTree())))
  expect(tree.root.id).toMatch(uuidV4)
  expect(tree.branch(tree.root.id)).toMatch(uuidV4)
})

test('UAP-094 UAP-098 branch makes a named child with the state of its parent and switches nothing', () => {
  const tree = new ThreadTree({ state: said('first') })
  const id = tree.branch(tree.root.id, 'alternative')
  const second = tree.branch(tree.root.id)
  expect(tree.current).toBe(tree.root)
  expect(tree.root.children).toEqual([id, second])
  const node = tree.nodes.get(id)!
  expect(node.id).toMatch(uuidV4)
  expect([node.parentId, node.name, node.children]).toEqual([tree.root.id, 'alternative', []])
  expect(node.state).toBe(tree.root.state)
  expect('name' in tree.nodes.get(second)!).toBe(false)
  expect(() => tree.branch('nowhere')).toThrow(/no node "nowhere"/)
  expect(() => (tree.root.children as string[]).push('x')).toThrow()
})

test('UAP-095 checkout switches; an unknown node is an error and changes nothing', () => {
  const tree = new ThreadTree()
  const id = tree.branch(tree.root.id)
  tree.checkout(id)
  expect(tree.current.id).toBe(id)
  expect(() => tree.checkout('nowhere')).toThrow(
    expect.objectContaining({ code: 'INVALID_REQUEST' }) as Error,
  )
  expect(tree.current.id).toBe(id)
})

test('UAP-096 UAP-097 the example of the specification: no message twice, siblings untouched', async () => {
  const coder = scriptedAgent([says('one'), says('two'), says('three')])
  const tree = new ThreadTree()
  const { state: s1 } = await coder.generate('First', tree.history())
  tree.current.state = s1

  const altId = tree.branch(tree.current.id, 'alternative')
  const mainId = tree.branch(tree.current.id, 'main')
  tree.checkout(altId)
  const { state: s2 } = await coder.generate('Alternative path', tree.history())
  tree.current.state = s2
  expect(texts(tree.history())).toEqual(['First', 'one', 'Alternative path', 'two'])
  expect(tree.history()).toBe(s2)

  tree.checkout(mainId)
  expect(texts(tree.history())).toEqual(['First', 'one'])
  tree.current.state = (await coder.generate('Main path', tree.history())).state
  expect(texts(tree.nodes.get(altId)!.state)).toEqual(['First', 'one', 'Alternative path', 'two'])

  tree.checkout(tree.root.id)
  expect(tree.history()).toBe(s1)
})

test('UAP-096 nodes that hold only what is new are joined, those that were shortened stay short', () => {
  const tree = new ThreadTree({ state: said('a') })
  const step = (state: AgentState): void => {
    tree.checkout(tree.branch(tree.current.id))
    tree.current.state = state
  }
  step(said('b'))
  step(said('c', 'd'))
  expect(texts(tree.history())).toEqual(['a', 'b', 'c', 'd'])
  const whole = tree.history()
  step(whole.withMessage(new AssistantMessage('e')).withStep(4).withMetadata('k', 1))
  expect(texts(tree.history())).toEqual(['a', 'b', 'c', 'd', 'e'])
  expect([tree.history().step, tree.history().metadata]).toEqual([4, { k: 1 }])

  step(whole.withContext([new UserMessage('summary'), ...whole.messages.slice(-1)]))
  expect(texts(tree.history())).toEqual(['summary', 'd'])
  step(said('f'))
  expect(texts(tree.history())).toEqual(['summary', 'd', 'f'])
})

test('UAP-097 only a state can be the state of a node', () => {
  const tree = new ThreadTree()
  expect(() => (tree.current.state = tree.root.state.toJSON() as never)).toThrow(/AgentState/)
  expect(() => new ThreadTree({ state: {} as never })).toThrow(/AgentState/)
})

describe('UAP-099 JSON', () => {
  const runs = process.env['SKEIN_DEEP'] ? 1000 : 60
  /** Each number grows the tree: which node to branch from, what to do there. */
  const growth = fc.array(
    fc.tuple(fc.nat(50), fc.nat(3), fc.option(fc.string(), { nil: undefined })),
    {
      maxLength: 20,
    },
  )
  const grow = (plan: readonly (readonly [number, number, string | undefined])[]): ThreadTree => {
    const tree = new ThreadTree({ state: said('root') })
    for (const [from, kind, name] of plan) {
      const nodes = [...tree.nodes.keys()]
      tree.checkout(tree.branch(nodes[from % nodes.length]!, name))
      if (kind === 1) tree.current.state = tree.history().withMessage(new UserMessage(`${name}`))
      if (kind === 2) tree.current.state = said('delta')
      if (kind === 3) tree.checkout(nodes[0]!)
    }
    return tree
  }

  test('UAP-099 UAP-154 a round trip through text keeps structure, current node, states and all ids', () => {
    fc.assert(
      fc.property(growth, (plan) => {
        const tree = grow(plan)
        const json = JSON.parse(JSON.stringify(tree)) as object
        expect(Object.keys(json).toSorted()).toEqual(['currentId', 'nodes', 'rootId'])
        const restored = ThreadTree.fromJSON(json)
        expect(JSON.parse(JSON.stringify(restored))).toEqual(json)
        expect([restored.root.id, restored.current.id]).toEqual([tree.root.id, tree.current.id])
        expect(restored.history().messages.map(({ id }) => id)).toEqual(
          tree.history().messages.map(({ id }) => id),
        )
        // The root and the current node are those in `nodes`: a state set on one is seen through the other.
        expect(restored.root).toBe(restored.nodes.get(tree.root.id))
        expect(restored.current).toBe(restored.nodes.get(tree.current.id))
        const names = ({ nodes }: ThreadTree) => [...nodes.values()].map(({ name }) => name)
        expect(names(restored)).toEqual([undefined, ...plan.map(([, , name]) => name)])
        const grown = restored.branch(restored.current.id)
        expect(restored.nodes.get(grown)?.parentId).toBe(tree.current.id)
      }),
      { seed: 7, numRuns: runs },
    )
  })

  test('UAP-099 the order of the nodes in the JSON does not matter', () => {
    const json = grow([
      [0, 1, 'a'],
      [1, 1, 'b'],
      [0, 2, 'c'],
    ]).toJSON()
    const shuffled = ThreadTree.fromJSON({ ...json, nodes: json.nodes.toReversed() })
    expect(shuffled.history().messages.length).toBe(
      ThreadTree.fromJSON(json).history().messages.length,
    )
  })

  const { rootId, currentId, nodes } = grow([
    [0, 1, 'a'],
    [1, 1, 'b'],
  ]).toJSON()
  const [root, a, b] = nodes as [object, object, { id: string }]
  const wrong: Record<string, unknown> = {
    'no object': [],
    'no nodes': { rootId, currentId },
    'no root': { rootId: 'x', currentId, nodes },
    'a root with a parent': { rootId: b.id, currentId, nodes },
    'a parent that is no id': { rootId, currentId, nodes: [root, { ...a, parentId: 7 }, b] },
    'only a node with a parent': { rootId: b.id, currentId: b.id, nodes: [b] },
    'no such current node': { rootId, currentId: '__proto__', nodes },
    'a node twice': { rootId, currentId, nodes: [...nodes, b] },
    'an orphan': { rootId, currentId: rootId, nodes: [{ ...root, children: [] }, a, b] },
    'a missing child': { rootId, currentId: rootId, nodes: [root, { ...a, children: ['x'] }] },
    'a child twice': { rootId, currentId, nodes: [root, { ...a, children: [b.id, b.id] }, b] },
    'a cycle': {
      rootId,
      currentId,
      nodes: [root, { ...a, parentId: b.id }, { ...b, children: [(a as { id: string }).id] }],
    },
    'a foreign version': {
      rootId,
      currentId,
      nodes: [{ ...root, state: { ...(root as { state: object }).state, version: '2.0.0' } }, a, b],
    },
    'a name that is no text': { rootId, currentId, nodes: [root, { ...a, name: 1 }, b] },
    'no state': { rootId, currentId, nodes: [root, { ...a, state: undefined }, b] },
  }
  test.each(Object.entries(wrong))('UAP-099 UAP-169 %s is refused', (_, json) => {
    expect(() => ThreadTree.fromJSON(json)).toThrow(
      expect.objectContaining({ code: 'INVALID_REQUEST' }) as Error,
    )
  })
})

test('UAP-098 UAP-099 an id is used once, and a node without a name has no such field', () => {
  const tree = new ThreadTree({ ids: () => 'same' })
  expect(() => tree.branch('same')).toThrow(expect.objectContaining({ code: 'INVALID_REQUEST' }))
  expect(tree.root.children).toEqual([])
  const { nodes } = tree.toJSON()
  expect(nodes.map((node) => Object.keys(node).toSorted())).toEqual([
    ['children', 'id', 'parentId', 'state'],
  ])
})

test('UAP-096 a history with other messages than the node’s own, of the same number, is not the node’s', () => {
  const tree = new ThreadTree({ state: said('a') })
  tree.checkout(tree.branch(tree.root.id))
  tree.current.state = said('b')
  expect(texts(tree.history())).toEqual(['a', 'b'])
  tree.root.state = AgentState.initial()
  expect(tree.history()).toBe(tree.current.state)
})

test('UAP-097 history changes no node, and a node takes any state, a shorter one too', () => {
  const tree = new ThreadTree({ state: said('a', 'b') })
  const { root } = tree
  tree.checkout(tree.branch(root.id))
  const { current } = tree
  const [own, shorter] = [said('c'), said()]
  current.state = own
  expect(texts(tree.history())).toEqual(['a', 'b', 'c'])
  expect(current.state).toBe(own)
  expect(texts(root.state)).toEqual(['a', 'b'])
  for (const node of [current, root]) {
    node.state = shorter
    expect(node.state).toBe(shorter)
  }
})
