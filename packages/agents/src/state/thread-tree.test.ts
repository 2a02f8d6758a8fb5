import { AssistantMessage, UserMessage } from '@skein/ai'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { AgentState } from './state.ts'
import { ThreadTree, type ThreadTreeJSON } from './thread-tree.ts'

/** What is done to a tree: a branch below a node, or a change of the state of a node. */
const step = fc.record({
  node: fc.nat(1000),
  what: fc.constantFrom('branch', 'say', 'think', 'cut', 'replace') satisfies fc.Arbitrary<string>,
  text: fc.string({ maxLength: 20 }),
})

function grown(steps: readonly { node: number; what: string; text: string }[]): ThreadTree {
  let count = 0
  const tree = new ThreadTree({ ids: () => `n${count++}` })
  for (const { node: place, what, text } of steps) {
    const nodes = [...tree.nodes.values()]
    const node = nodes[place % nodes.length]!
    const { messages } = node.state
    if (what === 'branch') tree.checkout(tree.branch(node.id, text === '' ? undefined : text))
    if (what === 'say')
      node.state = node.state.withMessages([
        messages.length % 2 === 0 ? new UserMessage(text) : new AssistantMessage(text || '.'),
      ])
    if (what === 'think') node.state = node.state.withReasoning(text)
    if (what === 'cut') node.state = node.state.withContext(messages.slice(messages.length >> 1))
    if (what === 'replace' && messages.length > 0)
      node.state = node.state.withContext([
        new UserMessage(text, { id: messages[0]!.id }),
        ...messages.slice(1),
      ])
  }
  return tree
}

/** The form without sharing, in which every node has its whole state. */
const whole = (tree: ThreadTree): ThreadTreeJSON => ({
  ...tree.toJSON(),
  nodes: [...tree.nodes.values()].map((node) => node.toJSON()),
})

describe('a tree as JSON', () => {
  test('property: both forms give the same tree, and the compact one stays as it is', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const tree = grown(steps)
        const text = JSON.stringify(tree)
        const read = ThreadTree.fromJSON(JSON.parse(text))
        expect(whole(read)).toEqual(JSON.parse(JSON.stringify(whole(tree))))
        expect(JSON.stringify(read)).toBe(text)
        const old = ThreadTree.fromJSON(JSON.parse(JSON.stringify(whole(tree))))
        expect(whole(old)).toEqual(whole(read))
        expect(JSON.stringify(old)).toBe(text)
        expect(text.length).toBeLessThanOrEqual(
          JSON.stringify(whole(tree)).length + tree.nodes.size * 80,
        )
      }),
      { numRuns: process.env['SKEIN_DEEP'] ? 2_000 : 150 },
    )
  })

  test('property: the order of the nodes does not matter', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 30 }), fc.integer(), (steps, seed) => {
        const tree = grown(steps)
        const json = JSON.parse(JSON.stringify(tree)) as ThreadTreeJSON
        const mixed = json.nodes.toSorted((a, b) => hash(a.id, seed) - hash(b.id, seed))
        const read = ThreadTree.fromJSON({ ...json, nodes: mixed })
        for (const [id, node] of tree.nodes)
          expect(read.nodes.get(id)!.toJSON()).toEqual(JSON.parse(JSON.stringify(node)))
      }),
      { numRuns: 50 },
    )
  })

  test('many branches of a long conversation take little more than the conversation', () => {
    const messages = Array.from(
      { length: 400 },
      (_, place) => new UserMessage(`m${place}`.repeat(50)),
    )
    const state = AgentState.initial().withMessages(messages)
    const tree = new ThreadTree({ state })
    const one = JSON.stringify(tree).length
    for (let count = 0; count < 100; count++) tree.branch(tree.root.id)
    expect(JSON.stringify(tree).length).toBeLessThan(one + 100 * 400)
    const read = ThreadTree.fromJSON(JSON.parse(JSON.stringify(tree)))
    const [first, second] = read.leaves
    expect(first!.state.messages[7]).toBe(second!.state.messages[7]) // read once
    expect(first!.state.messages).toHaveLength(400)
  })

  test.each([
    ['more than the parent has', 3],
    ['less than none', -1],
    ['half a message', 0.5],
    ['a text', '1'],
    ['no number', { messages: 1 }],
  ])('sharing that is not right is refused: %s', (_, shared) => {
    const state = AgentState.initial().withMessages([new UserMessage('a'), new UserMessage('b')])
    const tree = new ThreadTree({ state })
    tree.branch(tree.root.id)
    const json = JSON.parse(JSON.stringify(tree)) as { nodes: { shared?: unknown }[] }
    expect(json.nodes[1]!.shared).toBe(2)
    json.nodes[1]!.shared = shared
    expect(() => ThreadTree.fromJSON(json)).toThrow(/nodes\[1\]\.shared/)
    delete json.nodes[1]!.shared
    json.nodes[0]!.shared = 1
    expect(() => ThreadTree.fromJSON(json)).toThrow('nodes[0].shared')
  })

  test('small JSON does not become a tree of any size', () => {
    const state = AgentState.initial().withMessages(
      Array.from({ length: 5_000 }, () => new UserMessage('x')),
    )
    const tree = new ThreadTree({ state })
    for (let count = 0; count < 2_100; count++) tree.branch(tree.root.id)
    const json: unknown = JSON.parse(JSON.stringify(tree))
    expect(() => ThreadTree.fromJSON(json)).toThrow('more than 10000000 messages')
  })
})

function hash(text: string, seed: number): number {
  let value = seed
  for (const letter of text) value = (Math.imul(value, 31) + letter.charCodeAt(0)) | 0
  return value
}
