import { canonicalJson, type JsonObject, type TestFunctions } from '@skein/base'
import { AssistantMessage, ToolResultMessage, UserMessage } from '@skein/ai'
import type { CheckpointStore } from '../contract/checkpoint-store.ts'
import { journalEntry } from '../checkpoint/saved-state.ts'
import type { AgentStateJSON } from '../state/state-types.ts'
import { AgentState } from '../state/state.ts'

/** A store to be tested. */
export interface StoreSuite {
  readonly name: string
  /** Returns a new, empty store for every test. */
  readonly open: () => CheckpointStore | Promise<CheckpointStore>
  /**
   * Opens another store over the same data, as a new process would; absent if the data is lost with the
   * store.
   */
  readonly reopen?: (store: CheckpointStore) => CheckpointStore | Promise<CheckpointStore>
}

/**
 * Defines the tests that every checkpoint store must pass (UAP §12.4.1), for any test runner:
 *
 *     describeCheckpointStore({ describe, test }, { name: 'redis', open: () => redisCheckpoints(client) })
 */
export function describeCheckpointStore(functions: TestFunctions, suite: StoreSuite): void {
  functions.describe(`checkpoint store ${suite.name}`, () => {
    for (const [name, body] of Object.entries(cases))
      functions.test(name, async () => body(await suite.open()))
    const { reopen } = suite
    if (reopen)
      functions.test('what was saved is there after a restart', async () => {
        const store = await suite.open()
        const state = stateWith('before the restart')
        await store.save('s', state)
        same(await (await reopen(store)).load('s'), state, 'the state of a reopened store')
      })
  })
}

type Case = (store: CheckpointStore) => Promise<void>

const cases: Readonly<Record<string, Case>> = {
  'an unknown session has no state': async (store) => {
    same(await store.load('nobody'), null, 'load of an unknown session')
    if (store.loadMetadata)
      same(await store.loadMetadata('nobody'), null, 'metadata of an unknown session')
    same(await store.list(), [], 'the list of an empty store')
  },
  'what is loaded is what was saved, to the last byte and id': async (store) => {
    const state = richState()
    await store.save('s', state)
    same(await store.load('s'), state, 'the loaded state')
    AgentState.fromJSON(await store.load('s'))
  },
  'the newest save wins': async (store) => {
    for (const text of ['one', 'two', 'three']) await store.save('s', stateWith(text))
    same(textOf(await store.load('s')), 'three', 'the text of the loaded state')
  },
  'saves that overlap leave one whole state: the last': async (store) => {
    await Promise.all(
      Array.from({ length: 20 }, (_, step) => store.save('s', stateWith(`step ${step}`))),
    )
    same(textOf(await store.load('s')), 'step 19', 'the text of the loaded state')
  },
  'a saved state does not change with the object it came from, nor with one that was loaded':
    async (store) => {
      const state = JSON.parse(JSON.stringify(stateWith('as saved'))) as { metadata: JsonObject }
      await store.save('s', state as unknown as AgentStateJSON)
      Object.assign(state.metadata, { changed: true })
      Object.assign((await store.load('s'))?.metadata ?? {}, { changed: true })
      same((await store.load('s'))?.metadata['changed'], undefined, 'metadata.changed')
    },
  'sessions do not touch each other, whatever their ids': async (store) => {
    for (const id of ids) await store.save(id, stateWith(id))
    for (const id of ids) same(textOf(await store.load(id)), id, `the state of ${id}`)
    same((await store.list()).toSorted(), ids.toSorted(), 'the list')
  },
  'a deleted session is gone, the others stay': async (store) => {
    await store.save('a', stateWith('a'))
    await store.save('b', stateWith('b'))
    await store.delete('a')
    await store.delete('nobody')
    same(await store.load('a'), null, 'the deleted state')
    same(await store.list(), ['b'], 'the list')
    if (store.loadMetadata) same(await store.loadMetadata('a'), null, 'the deleted metadata')
  },
  'metadata names session, checkpoint, time, step and agent': async (store) => {
    if (!store.loadMetadata) return
    const state = AgentState.initial().withStep(7).withMetadata('agentId', 'agent-1')
    await store.save('s', state.toJSON())
    const first = await store.loadMetadata('s')
    same([first?.sessionId, first?.step, first?.agentId], ['s', 7, 'agent-1'], 'metadata')
    same(new Date(first?.timestamp ?? '').toISOString(), first?.timestamp, 'the ISO timestamp')
    await store.save('s', state.toJSON())
    const second = await store.loadMetadata('s')
    if (!first?.checkpointId || first.checkpointId === second?.checkpointId)
      throw new Error(`Two checkpoints share the id ${JSON.stringify(first?.checkpointId)}.`)
  },
  'a journal answers the calls it knows, until the next save': async (store) => {
    if (!store.record) return
    const call = (toolCallId: string) => ({ toolCallId, toolName: 'pay', arguments: {} })
    const asked = AgentState.initial().withMessages([
      new UserMessage('pay'),
      new AssistantMessage('', [call('a'), call('b')]),
    ])
    await store.save('s', asked.toJSON())
    const done = journalEntry(call('b'), { type: 'done', result: Uint8Array.of(1, 2) })
    await store.record('s', done)
    const { answered } = AgentState.fromJSON(await store.load('s')).suspension ?? {}
    same(
      answered?.results.map(({ toolCallId, result }) => [toolCallId, [...(result as Uint8Array)]]),
      [['b', [1, 2]]],
      'the results in the loaded state',
    )
    await store.save('s', asked.toJSON())
    same((await store.load('s'))?.suspension, undefined, 'the suspension after another save')
  },
}

const ids = ['plain', 'With Space', 'a/b', '../up', '.', '..', 'a%2Fb', 'ünï/codé', 'x'.repeat(80)]

function stateWith(text: string): AgentStateJSON {
  return AgentState.initial().withMessage(new UserMessage(text)).withStep(1).toJSON()
}

function richState(): AgentStateJSON {
  const call = { toolCallId: 'call_1', toolName: 'look', arguments: { deep: [1, { two: null }] } }
  const image = { type: 'image', source: { type: 'bytes', data: Uint8Array.of(0, 255) } } as const
  return AgentState.initial()
    .withMessages([
      new UserMessage([{ ...image, mimeType: 'image/png' }], { metadata: { own: { a: 'ä' } } }),
      new AssistantMessage('looking', [call]),
      new ToolResultMessage([{ toolCallId: 'call_1', result: { bytes: Uint8Array.of(7) } }]),
      new AssistantMessage('\u{1F9F6} done'),
    ])
    .withReasoning('because')
    .withPlan([{ id: '1', description: 'look', dependsOn: [], status: 'completed' }])
    .withMetadata('user', { name: 'Ada' })
    .toJSON()
}

function textOf(json: AgentStateJSON | null): string | undefined {
  return json ? AgentState.fromJSON(json).messages[0]?.text : undefined
}

/** Throws unless both values have the same canonical JSON, in which the order of fields does not matter. */
function same(actual: unknown, expected: unknown, what: string): void {
  const [is, should] = [actual, expected].map((value) =>
    value === undefined ? 'undefined' : canonicalJson(JSON.parse(JSON.stringify(value))),
  )
  if (is !== should) throw new Error(`Expected ${what} to be ${should}, but it is ${is}.`)
}
