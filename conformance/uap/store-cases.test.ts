/** Checkpoint stores and the runs that save into them, in the less common cases. */
import {
  agent,
  AgentState,
  subagent,
  type AgentOptions,
  type AgentStateJSON,
  type ExecutionStrategy,
} from '@skein/agents'
import {
  type CheckpointMetadata,
  type CheckpointStore,
  encryptedCheckpoints,
  fileCheckpoints,
  memoryCheckpoints,
  sqliteCheckpoints,
} from '@skein/agents/checkpoint'
import {
  AssistantMessage,
  defer,
  messageToJSON,
  type Tool,
  ToolResultMessage,
  UserMessage,
} from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { manualClock, sequentialIds } from '@skein/base'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { custom } from './support/custom-strategy.ts'
import { recordingStore, uuidV4 } from './support/state.ts'

const root = mkdtempSync(join(tmpdir(), 'store-cases-'))
afterAll(() => rmSync(root, { recursive: true }))

const start = AgentState.initial()
const clock = manualClock(Date.UTC(2001, 1, 3))
const files = (compress = false): CheckpointStore =>
  fileCheckpoints({
    dir: join(root, crypto.randomUUID()),
    fsync: false,
    journal: true,
    compress,
    clock,
    ids: sequentialIds('v'),
  })
const stores: Readonly<Record<string, () => CheckpointStore>> = {
  memory: () => memoryCheckpoints({ journal: true, clock, ids: sequentialIds('v') }),
  files: () => files(),
  'compressed files': () => files(true),
  SQLite: () => sqliteCheckpoints({ path: ':memory:', journal: true, clock, ids: sequentialIds('v') }), // prettier-ignore
  'encrypted files': () => encryptedCheckpoints(files(), { key: new Uint8Array(32) }),
}

describe.each(Object.entries(stores))('%s', (name, open) => {
  test('UAP-159 a state that its owner changes between two saves is saved as it was each time', async () => {
    const store = open()
    const mine = JSON.parse(JSON.stringify(start.withMetadata('n', { list: [1] }))) as AgentStateJSON // prettier-ignore
    const copies: unknown[] = []
    for (const n of [2, 3]) {
      await store.save('s', mine)
      copies.push(structuredClone(mine))
      ;(mine.metadata['n'] as { list: number[] }).list.push(n)
    }
    const last = { ...structuredClone(mine), metadata: {} }
    await store.save('s', last)
    expect(await store.load('s')).toEqual(last)
    const versions = await store.history!('s')
    for (const [index, copy] of copies.entries())
      expect(await store.loadVersion!('s', versions[index]!.checkpointId)).toEqual(copy)
  })

  test('UAP-156 UAP-160 metadata has its five fields and no other, with the time of the store’s clock', async () => {
    const store = open()
    const state = start.withStep(3).withMetadata('agentId', 'a').toJSON()
    const expected: CheckpointMetadata[] = []
    for (const checkpointId of ['v1', 'v2']) {
      const timestamp = new Date(clock.now()).toISOString()
      expected.push({ sessionId: 's', checkpointId, timestamp, step: 3, agentId: 'a' })
      expect(await store.save('s', state)).toEqual(expected.at(-1))
      expect(await store.loadMetadata!('s')).toEqual(expected.at(-1))
      clock.advance(1000)
    }
    expect(await store.history!('s')).toEqual(expected)
    await store.save('nobody', start.toJSON())
    expect(await store.loadMetadata!('nobody')).toMatchObject({ step: 0, agentId: '' })
  })

  test('UAP-154 UAP-159 UAP-126 a journal is added to its state, which keeps its id, and goes with its session', async () => {
    const store = open()
    if (!store.record) {
      expect(name).toBe('encrypted files') // the only one without a journal
      return
    }
    const toolCalls = ['c', 'd'].map((toolCallId) => ({ toolCallId, toolName: 't', arguments: {} }))
    const state = start
      .withMessages([new UserMessage('x'), new AssistantMessage('', toolCalls)])
      .toJSON()
    await store.save('s', state)
    // A call that is tried again after a crash has two entries: of both, result and trace of the last one count.
    for (const attempt of [0, 1]) {
      const result = { toolCallId: 'c', toolName: 't', result: attempt, isError: false }
      const message = messageToJSON(new ToolResultMessage([result]))
      const times = { startTime: 1, endTime: 2, success: true }
      const names = { subagentId: `s${attempt}`, subagentType: 't', parentToolCallId: 'c' }
      const trace = { ...names, prompt: 'p', ...times }
      await store.record('s', { toolCallId: 'c', message, traces: [trace] })
      expect(await store.load('s')).toEqual({
        ...state,
        subagentTraces: [trace],
        suspension: { answered: expect.objectContaining({ results: [result] }), deferred: [] },
      })
    }
    await store.delete('s')
    await store.save('s', state)
    expect(await store.load('s')).toEqual(state)
  })
})

const worker = (options: Partial<AgentOptions>) =>
  agent({ model: scripted(() => says('hi')), sessionId: 's', ...options })

describe('a store of one’s own', () => {
  test('UAP-159 may be an object with private fields, with or without versions', async () => {
    class Plain implements CheckpointStore {
      readonly inner: CheckpointStore = memoryCheckpoints()
      readonly #given: number[] = []
      get given(): readonly number[] {
        return this.#given
      }
      async save(...given: Parameters<CheckpointStore['save']>) {
        this.#given.push(given.length)
        return this.inner.save(...given)
      }
      async load(sessionId: string) {
        return this.#given.length > 0 ? this.inner.load(sessionId) : null
      }
      async delete(sessionId: string): Promise<void> {
        await this.inner.delete(sessionId)
      }
      async list() {
        return this.inner.list()
      }
    }
    class WithMetadata extends Plain {
      readonly #asked: string[] = []
      get asked(): readonly string[] {
        return this.#asked
      }
      async loadMetadata(sessionId: string) {
        this.#asked.push(sessionId)
        return this.inner.loadMetadata!(sessionId)
      }
    }
    class WithHistory extends Plain {
      async history(sessionId: string) {
        return this.inner.history!(sessionId)
      }
    }
    class Whole extends WithMetadata {
      async history(sessionId: string) {
        return this.inner.history!(sessionId)
      }
    }
    for (const checkpoints of [new Plain(), new WithMetadata(), new WithHistory(), new Whole()]) {
      const errors: unknown[] = []
      const onCheckpointError = (error: unknown): void => void errors.push(error)
      const one = worker({ checkpoints, onCheckpointError })
      const { state } = await one.generate('x', start)
      await one.generate('y', state)
      await one.flush()
      expect(errors).toEqual([])
      expect((await checkpoints.load('s'))?.messages).toHaveLength(4)
      // Only a store with versions and metadata learns which version it should have.
      const isChecked = checkpoints instanceof Whole
      expect(checkpoints.given).toEqual([isChecked ? 3 : 2, isChecked ? 3 : 2])
    }
  })

  test('UAP-167 of which every operation fails is reported and stops no run', async () => {
    const failing = (fail: () => never): CheckpointStore => ({
      save: fail,
      load: fail,
      loadMetadata: fail,
      history: fail,
      delete: fail,
      list: fail,
      record: fail,
    })
    const later = () => Promise.reject(new Error('no disk')) as never
    const now = (): never => {
      throw new Error('no disk')
    }
    for (const fail of [later, now]) {
      const errors: unknown[][] = []
      const onCheckpointError = (...given: unknown[]): void => void errors.push(given)
      const one = worker({ checkpoints: failing(fail), onCheckpointError })
      const { turn } = await one.generate('x', start)
      await one.flush()
      expect(turn.response.text).toBe('hi')
      expect(errors.length).toBeGreaterThan(1)
      for (const [error, sessionId] of errors)
        expect([(error as Error).message, sessionId]).toEqual(['no disk', 's'])
    }
  })
})

describe('a strategy of one’s own', () => {
  /** Returns a state that was made anew, and calls no hooks. */
  const fresh = (metadata: object = {}): ExecutionStrategy => ({
    ...custom(),
    execute: async ({ llm, input }) => {
      const turn = await llm.generate(input)
      const named = Object.entries(metadata).reduce(
        (state, [name, value]: [string, unknown]) => state.withMetadata(name, value),
        AgentState.initial(),
      )
      return { turn, state: named.withMessages(turn.messages) }
    },
  })

  test('UAP-165 its states are saved under the session and agent of the run, whatever they say themselves', async () => {
    for (const metadata of [{}, { sessionId: 'other', agentId: 'other' }]) {
      const checkpoints = recordingStore()
      const one = worker({ checkpoints, execution: fresh(metadata) })
      const { state } = await one.generate('x', start)
      await one.flush()
      const owner = { sessionId: 's', agentId: one.id }
      expect(checkpoints.saves.map(([id, saved]) => [id, saved.metadata])).toEqual([['s', owner]])
      expect(state.metadata).toEqual(owner)
    }
  })

  test('UAP-164 is not held up by a save that never ends', async () => {
    const checkpoints = { ...recordingStore(), save: () => new Promise<void>(() => {}) }
    for (const execution of [fresh(), custom()]) {
      const { turn } = await worker({ checkpoints, execution }).generate('x', start)
      expect(turn.response.text).toBe('hi')
    }
  })
})

test('UAP-164 a run with sub-agents is not held up by a save of its own that never ends', async () => {
  const its = agent({ model: scripted(() => says('hi')), checkpoints: memoryCheckpoints() })
  const parameters = { type: 'object' }
  const kid = subagent({
    name: 'kid',
    description: 'd',
    parameters,
    agent: its,
    prompt: () => 'go',
  })
  const checkpoints = { ...recordingStore(), save: () => new Promise<void>(() => {}) }
  const model = scripted([calls('kid'), says('done')])
  const { turn } = await agent({ model, tools: [kid], checkpoints }).generate('x', start)
  expect(turn.response.text).toBe('done')
})

test('UAP-165 an agent makes a session for each fresh state, and leaves another state in its own', async () => {
  const checkpoints = recordingStore()
  const one = agent({ model: scripted(() => says('hi')), checkpoints })
  const first = await one.generate('x', start)
  const other = await one.generate('y', start.withMetadata('sessionId', 'restored'))
  const again = await one.generate('z', start)
  await one.flush()
  const ids = [first, other, again].map(({ state }) => state.metadata['sessionId'])
  expect(ids[1]).toBe('restored')
  expect(ids[2]).not.toBe(ids[0])
  expect(checkpoints.saves.map(([id]) => id)).toEqual(ids)
})

test('UAP-152 a save that never ends does not keep an abort waiting, though each step waits for its save', async () => {
  const controller = new AbortController()
  const save = () => (controller.abort(), new Promise<void>(() => {}))
  const one = worker({ checkpoints: { ...recordingStore(), save }, durability: 'sync' })
  await expect(one.generate('x', start, { signal: controller.signal })).rejects.toMatchObject({
    code: 'CANCELLED',
  })
})

test('UAP-154 UAP-169 of an encrypted state its store sees ids and step, and nothing else', async () => {
  const inner = memoryCheckpoints()
  const state = start
    .withStep(2)
    .withMessage(new UserMessage('secret'))
    .withReasoning('secret')
    .withMetadata('sessionId', 's')
    .withMetadata('agentId', 'a')
    .withMetadata('user', 'secret')
  await encryptedCheckpoints(inner, { key: new Uint8Array(32) }).save('s', state.toJSON())
  const seen = await inner.load('s')
  expect({ ...seen, reasoning: [] }).toEqual({
    ...start.toJSON(),
    id: state.id,
    step: 2,
    metadata: { sessionId: 's', agentId: 'a', sealed: true },
  })
  expect(JSON.stringify(seen)).not.toContain('secret')
})

test('UAP-163 UAP-029 a session id in the state that is no text, or empty, is replaced by a made one', async () => {
  for (const known of ['', 0, 7, null, true, {}, ['s']]) {
    const checkpoints = recordingStore()
    const one = agent({ model: scripted([says('hi')]), checkpoints })
    const { state } = await one.generate('x', start.withMetadata('sessionId', known))
    await one.flush()
    const [[sessionId, saved]] = checkpoints.saves as [[string, AgentStateJSON]]
    expect(sessionId, JSON.stringify(known)).toMatch(uuidV4)
    expect([state.metadata['sessionId'], saved.metadata['sessionId']]).toEqual([
      sessionId,
      sessionId,
    ])
  }
})

test('UAP-164 a run that is resumed with answers is not held up by a save that never ends', async () => {
  const store = recordingStore()
  const ask: Tool = {
    name: 'ask',
    description: 'd',
    parameters: { type: 'object' },
    run: () => defer({ kind: 'input', request: null }),
  }
  const script = [calls('ask', {}, { id: 'a' }), says('done')]
  const { state } = await worker({ model: scripted(script), tools: [ask] }).generate('x', start)
  const checkpoints = { ...store, save: () => new Promise<void>(() => {}) }
  const again = worker({ model: scripted(() => says('done')), tools: [ask], checkpoints })
  const answers = { a: { type: 'result', value: 1 } } as const
  for (const end of [again.resume(state, answers), again.resumeStream(state, answers).result])
    expect((await end).stopReason).toBe('complete')
})
