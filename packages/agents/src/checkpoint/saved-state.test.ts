import { AssistantMessage, defer, messageToJSON, ToolResultMessage, UserMessage } from '@skein/ai'
import { zeroUsage } from '@skein/ai/engine'
import { calls, says, scripted } from '@skein/ai/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { agent, ThreadTree } from '../index.ts'
import { newAccount } from '../state/run-account.ts'
import { AgentState } from '../state/state.ts'
import type { CallRecord } from '../contract/checkpoint-store.ts'
import { foldJournal, memoryCheckpoints, packTree, sqliteCheckpoints, unpackTree } from './index.ts'

const asked = ['a', 'b'].map((toolCallId) => ({ toolCallId, toolName: 'kid', arguments: {} }))
const open = AgentState.initial()
  .withMessages([new UserMessage('x'), new AssistantMessage('', asked)])
  .withRun(newAccount('s'))

function trace(parentToolCallId: string) {
  const usage = { ...zeroUsage, totalTokens: 5 }
  const name = { subagentId: `${parentToolCallId}-run`, subagentType: 'kid', prompt: '' }
  return { ...name, parentToolCallId, startTime: 0, endTime: 1, success: true, usage }
}

function entry(toolCallId: string, result: string, isTraced = false): CallRecord {
  const message = messageToJSON(new ToolResultMessage([{ toolCallId, result }]))
  return isTraced ? { toolCallId, message, traces: [trace(toolCallId)] } : { toolCallId, message }
}

test('the results of open calls are added, with the traces and tokens of their sub-agents', () => {
  const json = open.toJSON()
  const entries = [
    entry('a', 'first', true),
    entry('z', 'of an older message', true),
    entry('a', 'last', true),
  ]
  const folded = foldJournal(json, entries)
  expect(folded.id).toBe(json.id)
  expect(folded.suspension).toMatchObject({
    answered: { results: [{ toolCallId: 'a', result: 'last' }] },
    deferred: [],
  })
  expect(folded.subagentTraces).toEqual([trace('a')])
  expect(folded.run!.subagentUsage.totalTokens).toBe(5)
})

test('a call that the state already knows is not counted again', () => {
  const answered = new ToolResultMessage([{ toolCallId: 'a', result: 1 }])
  const json = open.withSuspension({ answered, deferred: [] }).toJSON()
  const folded = foldJournal(json, [entry('a', 'again', true), entry('b', 'new', true)])
  expect(folded.subagentTraces).toEqual([trace('b')])
  expect(folded.run!.subagentUsage.totalTokens).toBe(5)
})

test('earlier answers and earlier tokens stay', () => {
  const answered = new ToolResultMessage([{ toolCallId: 'a', result: 'early' }])
  const subagentUsage = { ...zeroUsage, totalTokens: 7 }
  const before = open.withRun({ ...open.run!, subagentUsage })
  const json = before.withSuspension({ answered, deferred: [] }).toJSON()
  const folded = foldJournal(json, [entry('b', 'late', true)])
  expect(folded.suspension?.answered?.results).toMatchObject([
    { toolCallId: 'a', result: 'early' },
    { toolCallId: 'b', result: 'late' },
  ])
  expect(folded.run!.subagentUsage.totalTokens).toBe(12)
})

test('a call that waited and has a result now waits no longer', () => {
  const request = { kind: 'input', request: 'well?' } as const
  const deferred = ['a', 'b'].map((toolCallId) => ({ toolCallId, request }))
  const json = open.withSuspension({ deferred }).toJSON()
  const folded = AgentState.fromJSON(foldJournal(json, [entry('a', 'known')]))
  expect(folded.interrupts.map(({ toolCallId }) => toolCallId)).toEqual(['b'])
  expect(folded.suspension?.answered?.results).toMatchObject([{ toolCallId: 'a' }])
})

test('a journal without results of open calls changes nothing', () => {
  const json = open.toJSON()
  expect(foldJournal(json, [entry('z', 'other', true)])).toBe(json)
})

test('an entry that is no result of a call is passed over', () => {
  const other = { toolCallId: 'a', message: messageToJSON(new UserMessage('hi')) }
  const folded = foldJournal(open.toJSON(), [other, entry('a', 'done')])
  expect(folded.suspension?.answered?.results).toMatchObject([{ toolCallId: 'a', result: 'done' }])
})

test('the journal of a run has its finished calls, and not those that wait for an answer', async () => {
  const recorded: string[] = []
  const store = memoryCheckpoints({ journal: true })
  const parameters = { type: 'object' }
  const worker = agent({
    model: scripted([[calls('pay', {}, { id: 'p' }), calls('ask', {}, { id: 'a' })], says('done')]),
    tools: [
      { name: 'pay', description: 'd', parameters, run: () => 'paid' },
      {
        name: 'ask',
        description: 'd',
        parameters,
        run: () => defer({ kind: 'input', request: 'well?' }),
      },
    ],
    checkpoints: {
      ...store,
      record: async (sessionId, entry) => {
        recorded.push(entry.toolCallId)
        await store.record?.(sessionId, entry)
      },
    },
    sessionId: 's',
  })
  const { interrupts } = await worker.generate('go', AgentState.initial())
  expect(interrupts?.map(({ toolCallId }) => toolCallId)).toEqual(['a'])
  expect(recorded).toEqual(['p'])
})

test('a call that failed or was denied is finished too: after a crash it is not tried again', async () => {
  const ran: string[] = []
  const parameters = { type: 'object' }
  const store = memoryCheckpoints({ journal: true })
  const died = new Error('the process dies here')
  let isDying = true
  const worker = agent({
    model: scripted([
      [
        calls('fail', {}, { id: 'f' }),
        calls('denied', {}, { id: 'd' }),
        calls('die', {}, { id: 'x' }),
      ],
      says('done'),
    ]),
    tools: [
      {
        name: 'fail',
        description: 'd',
        parameters,
        sequential: true,
        run: () => {
          ran.push('fail')
          throw new Error('no money')
        },
      },
      {
        name: 'denied',
        description: 'd',
        parameters,
        sequential: true,
        approval: () => (ran.push('asked'), false),
        run: () => 'never',
      },
      { name: 'die', description: 'd', parameters, sequential: true, run: () => 'alive' },
    ],
    checkpoints: store,
    sessionId: 's',
  })
  const commit = (effect: {
    readonly type: string
    readonly call?: { readonly toolName: string }
  }): void => {
    if (isDying && effect.type === 'call_start' && effect.call?.toolName === 'die') throw died
  }
  await expect(worker.generate('go', AgentState.initial(), { commit })).rejects.toThrow()
  await worker.flush()
  expect(ran).toEqual(['fail', 'asked'])
  isDying = false
  const { turn } = await worker.resume(AgentState.fromJSON((await store.load('s'))!), {})
  expect(turn.response.text).toBe('done')
  expect(ran).toEqual(['fail', 'asked'])
})

test('a checkpoint names the session and the agent that saved it, also if a hook returns a state of others', async () => {
  const store = memoryCheckpoints()
  const worker = agent({
    model: scripted([says('a')]),
    checkpoints: store,
    sessionId: 'mine',
    strategy: {
      onStepEnd: (_, { state }) =>
        state.withMetadata('sessionId', 'another').withMetadata('agentId', 'another'),
    },
  })
  await worker.generate('x', AgentState.initial())
  await worker.flush()
  const owner = { sessionId: 'mine', agentId: worker.id }
  expect((await store.load('mine'))?.metadata).toMatchObject(owner)
  expect(await store.loadMetadata?.('mine')).toMatchObject(owner)
})

/** What is done to a tree: a branch below a node, or a change of the state of a node. */
const change = fc.record({
  node: fc.nat(1000),
  what: fc.constantFrom('branch', 'say', 'think', 'trace', 'cut', 'replace'),
  text: fc.string({ maxLength: 20 }),
})

function grown(changes: readonly { node: number; what: string; text: string }[]): ThreadTree {
  let count = 0
  const tree = new ThreadTree({ ids: () => `n${count++}` })
  for (const { node: place, what, text } of changes) {
    const nodes = [...tree.nodes.values()]
    const node = nodes[place % nodes.length]!
    const { messages } = node.state
    if (what === 'branch') tree.checkout(tree.branch(node.id, text === '' ? undefined : text))
    if (what === 'say') node.state = node.state.withMessages([new UserMessage(text)])
    if (what === 'think') node.state = node.state.withReasoning(text)
    if (what === 'trace') node.state = node.state.withSubagentTrace(trace(text))
    if (what === 'cut') node.state = node.state.withContext(messages.slice(messages.length >> 1))
    if (what === 'replace' && messages.length > 0)
      node.state = node.state.withContext([
        new UserMessage(text, { id: messages[0]!.id }),
        ...messages.slice(1),
      ])
  }
  return tree
}

const again = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T

describe('a packed tree', () => {
  test('property: unpacking gives the JSON of the tree, and a tree that was read packs the same', () => {
    const changes = fc.array(change, { maxLength: 40 })
    fc.assert(
      fc.property(changes, fc.boolean(), (list, isReversed) => {
        const json = again(grown(list).toJSON())
        // A tree whose nodes stand in another order is packed less, and right all the same.
        const given = isReversed ? { ...json, nodes: json.nodes.toReversed() } : json
        const packed = again(packTree(given))
        expect(unpackTree(packed)).toEqual(given)
        const read = ThreadTree.fromJSON(unpackTree(packed))
        if (!isReversed) expect(packTree(read)).toEqual(packed)
        expect(unpackTree(given)).toEqual(given) // the form of UAP §12.2 can be given too
      }),
      { numRuns: process.env['SKEIN_DEEP'] ? 2_000 : 100 },
    )
  })

  test('has each message once: bytes grow with the messages, not with messages times branches', () => {
    const tree = new ThreadTree()
    const bytes = [50, 100, 200].map((count) => {
      while (tree.nodes.size < count) {
        const { current } = tree
        current.state = current.state.withMessages([new UserMessage('x'.repeat(500))])
        tree.checkout(tree.branch(current.id))
      }
      return JSON.stringify(packTree(tree)).length
    })
    expect(bytes[2]! / bytes[1]!).toBeLessThan(2.1)
    expect(bytes[1]! / bytes[0]!).toBeLessThan(2.1)
    expect(JSON.stringify(tree).length).toBeGreaterThan(20 * bytes[2]!)
  })

  test.each([
    ['more than the parent has', { messages: 3 }],
    ['less than none', { messages: -1 }],
    ['half a message', { messages: 0.5 }],
    ['a text', { messages: '1' }],
    ['no object', 7],
    ['another list', { metadata: 1 }],
    ['an inherited name', JSON.parse('{"__proto__":1}')],
  ])('counts that are not right are refused: %s', (_, shared: unknown) => {
    const state = AgentState.initial().withMessages([new UserMessage('a'), new UserMessage('b')])
    const tree = new ThreadTree({ state })
    tree.branch(tree.root.id)
    const { nodes, ...json } = packTree(tree)
    expect(nodes[1]!.shared).toEqual({ messages: 2 })
    const wrong = { ...json, nodes: [nodes[0], { ...nodes[1], shared }] }
    expect(() => unpackTree(wrong)).toThrow(/nodes\[1\]\.shared/)
    const rootless = { ...json, nodes: [{ ...nodes[0], shared: { messages: 1 } }, nodes[1]] }
    expect(() => unpackTree(rootless)).toThrow('nodes[0].shared')
  })

  test('what is no tree is refused, there or by the tree itself', () => {
    for (const json of [undefined, [], {}, { nodes: {} }])
      expect(() => unpackTree(json)).toThrow('nodes is not a list')
    for (const nodes of [[7], [{ state: 7 }], [{ state: { messages: 7 }, shared: {} }]])
      expect(() => ThreadTree.fromJSON(unpackTree({ nodes }))).toThrow('not the JSON of')
  })

  test('a short text does not become a tree of any size', () => {
    const messages = Array.from({ length: 5_000 }, () => 0)
    const child = (id: string) => ({
      id,
      parentId: 'r',
      state: { messages: [] },
      shared: { messages: 5_000 },
    })
    const nodes = Array.from({ length: 2_100 }, (_, index) => child(`n${index}`))
    const root = { id: 'r', parentId: null, state: { messages } }
    expect(() => unpackTree({ nodes: [root, ...nodes] })).toThrow('more than 10000000 items')
  })
})

test.each([
  ['memory', () => memoryCheckpoints({ journal: true })],
  ['SQLite', () => sqliteCheckpoints({ path: ':memory:', journal: true })],
])(
  'the journal of %s is folded into the newest state, until the next save or deletion',
  async (_, make) => {
    const store = make()
    await store.save('s', open.toJSON())
    await store.save('other', open.toJSON())
    await store.record!('s', entry('a', 'first'))
    await store.record!('s', entry('a', 'last'))
    await store.record!('s', entry('b', 'too'))
    expect((await store.load('s'))?.suspension?.answered?.results).toMatchObject([
      { toolCallId: 'a', result: 'last' },
      { toolCallId: 'b', result: 'too' },
    ])
    expect((await store.load('other'))?.suspension).toBeUndefined()
    await store.save('s', open.toJSON())
    expect((await store.load('s'))?.suspension).toBeUndefined()
    await store.record!('s', entry('a', 'again'))
    await store.delete('s')
    await store.save('s', open.toJSON())
    expect((await store.load('s'))?.suspension).toBeUndefined()
  },
)

test.each([
  ['memory', memoryCheckpoints()],
  ['SQLite', sqliteCheckpoints({ path: ':memory:' })],
])('%s without a journal records nothing', (_, store) => {
  expect(store.record).toBeUndefined()
})
