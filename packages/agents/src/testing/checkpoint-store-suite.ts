import { canonicalJson, type JsonObject, type TestFunctions } from '@skein/base'
import { AssistantMessage, ToolResultMessage, UserMessage } from '@skein/ai'
import type { CheckpointStore } from '../contract/checkpoint-store.ts'
import { journalEntry } from '../checkpoint/journal-entry.ts'
import { forkCheckpoint } from '../checkpoint/versions.ts'
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
  'every version can be loaded again, and the history names them in order': async (store) => {
    if (!store.history || !store.loadVersion) return
    const states: AgentStateJSON[] = []
    for (const state of growingStates(60)) {
      states.push(state)
      await store.save('s', state)
      same(await store.load('s'), state, `the newest state after ${states.length} saves`)
    }
    const history = await store.history('s')
    same(
      history.map(({ step }) => step),
      states.map(({ step }) => step),
      'the steps of the history',
    )
    same(history.at(-1), await store.loadMetadata?.('s'), 'the newest entry of the history')
    for (const [index, { checkpointId }] of history.entries())
      same(await store.loadVersion('s', checkpointId), states[index], `version ${index}`)
    same(await store.loadVersion('s', 'no such version'), null, 'an unknown version')
    same(await store.history('nobody'), [], 'the history of an unknown session')
    await store.delete('s')
    same(await store.history('s'), [], 'the history of a deleted session')
    same(await store.loadVersion('s', history[0]!.checkpointId), null, 'a deleted version')
  },
  'a save that expects another version is refused, and changes nothing': async (store) => {
    if (!store.history || !store.loadMetadata) return
    await store.save('s', stateWith('one'), { expected: null })
    const first = (await store.loadMetadata('s'))!.checkpointId
    await store.save('s', stateWith('two'), { expected: first })
    for (const expected of [first, null]) {
      const refusal = await store.save('s', stateWith('late'), { expected }).catch((one) => one)
      same((refusal as { code?: unknown })?.code, 'CHECKPOINT_CONFLICT', 'the code of the error')
    }
    same(textOf(await store.load('s')), 'two', 'the state after a refused save')
    same((await store.history('s')).length, 2, 'the number of versions')
    await store.save('s', stateWith('three'))
    same(textOf(await store.load('s')), 'three', 'the state after a save that expects nothing')
  },
  'a version can be the start of another session': async (store) => {
    if (!store.history || !store.loadVersion) return
    await store.save('s', stateWith('one'))
    await store.save('s', stateWith('two'))
    const [first] = await store.history('s')
    const from = { sessionId: 's', checkpointId: first!.checkpointId, to: 't' }
    await forkCheckpoint(store, from)
    same(textOf(await store.load('t')), 'one', 'the forked state')
    same((await store.load('t'))?.metadata['sessionId'], 't', 'its session')
    same(textOf(await store.load('s')), 'two', 'the original')
    const again = await forkCheckpoint(store, from).catch((error: unknown) => error)
    same((again as { code?: unknown }).code, 'CHECKPOINT_CONFLICT', 'a fork onto a session')
  },
  'a journal answers the calls it knows, until the next save': async (store) => {
    if (!store.record) return
    const call = (toolCallId: string) => ({ toolCallId, toolName: 'pay', arguments: {} })
    const asked = AgentState.initial().withMessages([
      new UserMessage('pay'),
      new AssistantMessage('', [call('a'), call('b')]),
    ])
    await store.save('s', asked.toJSON())
    const entry = journalEntry(call('b'), { type: 'done', result: Uint8Array.of(1, 2) })
    await store.record('s', entry)
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

/** States as a run leaves them: mostly longer each time, now and then cut, replaced or with other metadata. */
function growingStates(count: number): AgentStateJSON[] {
  let state = AgentState.initial()
  return Array.from({ length: count }, (_, index) => {
    state = state.withStep(index + 1).withMessage(new UserMessage(`${index} ${'x'.repeat(700)}`))
    if (index % 7 === 3) state = state.withMetadata('at', { index })
    if (index % 7 === 5) state = state.withMetadata('at', undefined).withReasoning(`why ${index}`)
    if (index % 20 === 19) state = state.withContext(state.messages.slice(-3))
    if (index % 11 === 10) state = state.withPlan([])
    return state.toJSON()
  })
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
