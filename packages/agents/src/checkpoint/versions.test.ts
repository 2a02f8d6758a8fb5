import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import files from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { AssistantMessage, defer, type Tool, ToolResultMessage, UserMessage } from '@skein/ai'
import { calls, says, scripted } from '@skein/ai/testing'
import { countOf } from '../../../../conformance/support/counts.ts'
import { agent, AgentState, type AgentStateJSON, type AgentStreamEvent } from '../index.ts'
import {
  CheckpointConflict,
  type CheckpointStore,
  fileCheckpoints,
  memoryCheckpoints,
  sqliteCheckpoints,
} from './index.ts'
import { decodeVersions, ownCopy, VersionWriter } from './versions.ts'

let dir: string
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'versions-'))))
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(dir, { recursive: true })
})

/** The states of a run whose steps have one call with a result of 500 bytes each. */
function* runOf(steps: number): Generator<AgentState> {
  let state = AgentState.initial().withMessage(new UserMessage('go'))
  for (let step = 1; step <= steps; step++) {
    const toolCallId = `call_${step}`
    state = state
      .withStep(step)
      .withMessages([
        new AssistantMessage('', [{ toolCallId, toolName: 'read', arguments: { step } }]),
        new ToolResultMessage([{ toolCallId, toolName: 'read', result: 'x'.repeat(500) }]),
      ])
    yield state
  }
}

describe('bytes', () => {
  const STEPS = countOf({ fast: 1000, all: 2000, deep: 2000 })

  /** Counts the bytes that the file store hands to the disk for versions, and takes from it. */
  function countBytes(): { written: number; read: number } {
    const count = { written: 0, read: 0 }
    const { open, readFile } = files
    vi.spyOn(files, 'open').mockImplementation(async (...args) => {
      const handle = await open(...args)
      const { writeFile } = handle
      const isVersion = String(args[0]).includes(join('s', 'versions'))
      handle.writeFile = async (data, ...more) => {
        if (isVersion) count.written += Buffer.byteLength(data as string | Uint8Array)
        return writeFile.call(handle, data, ...more)
      }
      return handle
    })
    vi.spyOn(files, 'readFile').mockImplementation((async (path: string) => {
      const bytes = await readFile(path)
      count.read += bytes.byteLength
      return bytes
    }) as typeof readFile)
    return count
  }

  test(`of the versions of ${STEPS} steps grow linearly, and any version is read for twice the newest at most`, async () => {
    const count = countBytes()
    const store = fileCheckpoints({ dir, fsync: false })
    const totals: number[] = []
    for (const state of runOf(STEPS)) {
      const json = state.toJSON()
      await store.save('s', json, { isFollowed: state.step < STEPS })
      totals.push(count.written)
      // At any step, whichever version was written whole last.
      if (state.step % 50 === 0)
        expect(count.written).toBeLessThan(6 * JSON.stringify(json).length + 16_384)
    }
    const whole = JSON.stringify(await store.load('s')).length
    // Each state written whole would be a thousand times the last one.
    expect(totals.at(-1)!).toBeLessThan(6 * whole)
    // A step that writes no whole state costs the same at the end as at the beginning.
    const perStep = totals.map((total, index) => total - (totals[index - 1] ?? 0))
    const median = (list: readonly number[]): number =>
      list.toSorted((a, b) => a - b)[list.length >> 1]!
    expect(median(perStep.slice(-200))).toBeLessThan(1.1 * median(perStep.slice(100, 300)))

    count.read = 0
    await store.load('s')
    const newest = count.read
    const history = await store.history('s')
    expect(history.length).toBe(STEPS)
    for (let index = 0; index < STEPS; index += 37) {
      count.read = 0
      const version = await store.loadVersion('s', history[index]!.checkpointId)
      expect(version?.step).toBe(index + 1)
      expect(count.read).toBeLessThanOrEqual(2 * newest)
    }
  }, 60_000)

  test('of the rows in SQLite and of the records in memory grow linearly too', () => {
    const writer = new VersionWriter()
    let total = 0
    let chain: number[] = []
    let whole = 0
    for (const state of runOf(STEPS)) {
      const { isWhole, text } = writer.encode(ownCopy(state.toJSON()))
      total += text.length
      if (isWhole) chain = []
      chain.push(text.length)
      whole = Math.max(whole, ...(isWhole ? [text.length] : []))
      const longest = chain.reduce((sum, length) => sum + length, 0)
      expect(longest).toBeLessThanOrEqual(2 * Math.max(chain[0]!, 16_384))
    }
    expect(total).toBeLessThan(6 * whole)
  })
})

test('whatever a state does, the chain gives it back', () => {
  const message = fc.string({ maxLength: 8 }).map((text) => new UserMessage(text))
  type Move = (state: AgentState) => AgentState
  const move = fc.oneof(
    message.map(
      (one): Move =>
        (state) =>
          state.withMessage(one),
    ),
    fc.nat(5).map(
      (count): Move =>
        (state) =>
          state.withContext(state.messages.slice(count)),
    ),
    fc.tuple(fc.constantFrom('a', 'b'), fc.jsonValue()).map(
      ([name, value]): Move =>
        (state) =>
          state.withMetadata(name, value === null ? undefined : value),
    ),
    fc.string({ maxLength: 5 }).map(
      (text): Move =>
        (state) =>
          state.withReasoning(text),
    ),
    fc.constant<Move>((state) => state.withPlan([])),
    fc.constant<Move>((state) => state.withSuspension({ deferred: [] })),
    fc.constant<Move>((state) => state.withSuspension(undefined)),
  )
  fc.assert(
    fc.property(fc.array(move, { maxLength: 30 }), (moves) => {
      const writer = new VersionWriter()
      let state = AgentState.initial()
      let chain: { isWhole: boolean; value: unknown }[] = []
      for (const one of moves) {
        state = one(state)
        const { isWhole, text } = writer.encode(ownCopy(state.toJSON()))
        if (isWhole) chain = []
        chain.push({ isWhole, value: JSON.parse(text) })
        expect(decodeVersions(chain)).toEqual(JSON.parse(JSON.stringify(state)))
      }
    }),
    { seed: 36, numRuns: countOf({ fast: 100, all: 300, deep: 5000 }) },
  )
})

describe('files', () => {
  const last = (steps: number): AgentStateJSON => [...runOf(steps)].at(-1)!.toJSON()

  test('of an older release, and of another program, are the newest state', async () => {
    const store = fileCheckpoints({ dir, fsync: false })
    await store.save('s', last(100))
    const foreign = last(3)
    writeFileSync(join(dir, 's', 'checkpoint.json'), JSON.stringify(foreign))
    expect(await store.load('s')).toEqual(foreign)
    rmSync(join(dir, 's', 'versions'), { recursive: true })
    expect(await fileCheckpoints({ dir }).load('s')).toEqual(foreign)
    expect(await store.history('s')).toEqual([])
  })

  const written = (): AgentStateJSON =>
    JSON.parse(readFileSync(join(dir, 's', 'checkpoint.json'), 'utf8')) as AgentStateJSON

  test('UAP-161 checkpoint.json alone is the newest state after every save, however long it is', async () => {
    const store = fileCheckpoints({ dir, fsync: false })
    for (const state of runOf(120)) {
      const json = state.toJSON()
      await store.save('s', json)
      expect(written()).toEqual(JSON.parse(JSON.stringify(json)))
    }
  })

  test('UAP-161 a fast run writes checkpoint.json seldom, and at its end it is the whole state', async () => {
    const rename = vi.spyOn(files, 'rename')
    const note: Tool = {
      name: 'note',
      description: 'Notes.',
      parameters: { type: 'object' },
      run: () => 'x'.repeat(1000),
    }
    const worker = agent({
      model: scripted((_, index) => (index < 60 ? calls('note', {}) : says('done'))),
      tools: [note],
      checkpoints: fileCheckpoints({ dir, fsync: false }),
      sessionId: 's',
    })
    const { state } = await worker.generate('go', AgentState.initial())
    await worker.flush()
    const writes = rename.mock.calls.filter(([, to]) => String(to).endsWith('checkpoint.json'))
    expect(written()).toEqual(JSON.parse(JSON.stringify(state)))
    expect(writes.length).toBeLessThan(20)
  })

  test('UAP-161 checkpoint.json has the interrupt for which a run waits', async () => {
    const ask: Tool = {
      name: 'ask',
      description: 'Asks.',
      parameters: { type: 'object' },
      run: () => defer({ kind: 'input', request: 'Which one?' }),
    }
    const long = 'x'.repeat(2000)
    const worker = agent({
      model: scripted((_, index) => (index < 30 ? calls('note', {}) : calls('ask', {}))),
      tools: [ask, { ...ask, name: 'note', run: () => long }],
      checkpoints: fileCheckpoints({ dir, fsync: false }),
      sessionId: 's',
    })
    const { state, interrupts } = await worker.generate('go', AgentState.initial())
    await worker.flush()
    expect(interrupts).toMatchObject([{ request: 'Which one?' }])
    expect(written()).toEqual(JSON.parse(JSON.stringify(state)))
  })

  test('UAP-161 checkpoint.json has the calls of a run that failed in the middle of a step', async () => {
    const worker = agent({
      model: scripted(() => calls('note', {})),
      tools: [{ name: 'note', description: 'Notes.', parameters: {}, run: () => 'noted' }],
      checkpoints: fileCheckpoints({ dir, fsync: false, journal: true }),
      sessionId: 's',
      strategy: {
        onObserve: () => {
          throw new Error('full')
        },
      },
    })
    for (const text of ['go', 'again'])
      await expect(worker.generate(text, AgentState.initial())).rejects.toThrow('full')
    await worker.flush()
    const { messages } = written()
    expect(messages.map(({ type }) => type)).toEqual(['user', 'assistant'])
    expect(JSON.stringify(messages[0])).toContain('again')
  })

  test('UAP-161 checkpoint.json has the calls of a step while they run', async () => {
    let end!: (result: string) => void
    const worker = agent({
      model: scripted([calls('quick', {}), calls('slow', {}), says('done')]),
      tools: [
        { name: 'quick', description: 'Ends.', parameters: {}, run: () => 'quick' },
        {
          name: 'slow',
          description: 'Takes long.',
          parameters: {},
          run: () => new Promise<string>((resolve) => (end = resolve)),
        },
      ],
      checkpoints: fileCheckpoints({ dir, fsync: false, journal: true }),
      sessionId: 's',
    })
    const run = worker.generate('go', AgentState.initial())
    await vi.waitFor(
      () => expect(written().messages.at(-1)?.toolCalls?.[0]?.toolName).toBe('slow'),
      {
        timeout: 5000,
      },
    )
    end('slow')
    const { state } = await run
    await worker.flush()
    expect(written()).toEqual(JSON.parse(JSON.stringify(state)))
  })

  test('UAP-161 what a save has put off does not replace the newer state of another process', async () => {
    const [first, second, third] = [...runOf(3)].map((state) => state.toJSON())
    const store = fileCheckpoints({ dir, fsync: false })
    await store.save('s', first!)
    await store.save('s', second!, { isFollowed: true })
    vi.resetModules() // another process knows nothing of what this one has in memory
    const other = (await import('./file-checkpoints-node.ts')) as { fileCheckpoints: typeof fileCheckpoints } // prettier-ignore
    await other.fileCheckpoints({ dir, fsync: false }).save('s', third!)
    await store.finish!('s')
    expect(written().step).toBe(3)
    expect((await fileCheckpoints({ dir }).load('s'))?.step).toBe(3)
  })

  test('a save that another one follows may leave checkpoint.json behind, but nothing that was saved is lost', async () => {
    const store = fileCheckpoints({ dir, fsync: false })
    const states = [...runOf(120)].map((state) => state.toJSON())
    for (const state of states) await store.save('s', state, { isFollowed: true })
    expect(written().step).toBeLessThan(120)
    expect((await fileCheckpoints({ dir }).load('s'))?.step).toBe(120)
    // Another process goes on with a segment of its own, also after a line that was cut off.
    const segments = readdirSync(join(dir, 's', 'versions')).toSorted()
    const torn = join(dir, 's', 'versions', segments.at(-2)!)
    writeFileSync(torn, '{"checkpointId":"x","chan', { flag: 'a' })
    const onError = vi.fn()
    expect((await fileCheckpoints({ dir, onError }).load('s'))?.step).toBe(120)
    expect(onError).toHaveBeenCalledTimes(1)
  })

  test.each(['', '{"checkpointId":"x","who'])(
    'a segment that a dying process left with %j hides no saved state',
    async (left) => {
      const store = fileCheckpoints({ dir, fsync: false })
      for (const state of runOf(120))
        await store.save('s', state.toJSON(), { isFollowed: state.step > 60 })
      const versions = join(dir, 's', 'versions')
      const last = readdirSync(versions)
        .filter((name) => /^\d/.test(name))
        .toSorted()
        .at(-1)!
      const next = String(Number.parseInt(last, 10) + 1).padStart(8, '0')
      writeFileSync(join(versions, `${next}.ndjson`), left)
      expect((await fileCheckpoints({ dir, onError: vi.fn() }).load('s'))?.step).toBe(120)
    },
  )

  test('keepVersions removes the oldest', async () => {
    const store = fileCheckpoints({ dir, fsync: false, keepVersions: 50 })
    for (const state of runOf(400)) await store.save('s', state.toJSON())
    const history = await store.history('s')
    expect(history.length).toBeGreaterThanOrEqual(50)
    expect(history.length).toBeLessThan(400)
    for (const { checkpointId, step } of history)
      expect((await store.loadVersion('s', checkpointId))?.step).toBe(step)
    expect((await store.load('s'))?.step).toBe(400)
  })
})

describe('sessions', () => {
  test('UAP-030 conversations of one agent that begin with a fresh state never share a checkpoint', async () => {
    const store = memoryCheckpoints()
    const worker = agent({ model: scripted(() => says('noted')), checkpoints: store })
    const [ann, bob] = await Promise.all([
      worker.generate('Ann: my PIN is 1', AgentState.initial()),
      worker.generate('Bob: hello', AgentState.initial()),
    ])
    const cat = await worker.stream('Cat: hello', AgentState.initial()).result
    await worker.flush()
    const runs = [ann, bob, cat]
    const ids = runs.map(({ state }) => String(state.metadata['sessionId']))
    expect(new Set(ids).size).toBe(3)
    for (const [index, { state }] of runs.entries())
      expect(await store.load(ids[index]!)).toEqual(JSON.parse(JSON.stringify(state)))
    const next = await worker.generate('Ann: and now?', ann.state)
    expect(next.state.metadata['sessionId']).toBe(ids[0])
    // An application that gives an id means one conversation.
    const named = agent({ model: scripted(() => says('ok')), checkpoints: store, sessionId: 'one' })
    for (const text of ['a', 'b'])
      expect((await named.generate(text, AgentState.initial())).state.metadata['sessionId']).toBe(
        'one',
      )
  })
})

describe('two runs of one session at the same time', () => {
  const stores: Readonly<Record<string, () => CheckpointStore>> = {
    memory: () => memoryCheckpoints(),
    files: () => fileCheckpoints({ dir, fsync: false }),
    SQLite: () => sqliteCheckpoints({ path: ':memory:' }),
  }
  test.each(Object.entries(stores))(
    '%s: the second is told by event, warning and handler; both are in the history',
    async (_, open) => {
      const store = open()
      let release = (): void => {}
      const gate = new Promise<void>((resolve) => (release = resolve))
      const work: Tool = {
        name: 'work',
        description: 'Works.',
        parameters: { type: 'object' },
        run: async () => {
          await gate
          return 'ok'
        },
      }
      const errors: unknown[] = []
      const make = () =>
        agent({
          model: scripted([calls('work', {}), says('done')]),
          tools: [work],
          checkpoints: store,
          sessionId: 's',
          durability: 'sync',
          onCheckpointError: (error) => void errors.push(error),
        })
      const runs = [make(), make()].map((one) => one.stream('go', AgentState.initial()))
      const read = async (run: AsyncIterable<AgentStreamEvent>): Promise<string[]> => {
        const types: string[] = []
        for await (const { uap } of run) if (uap) types.push(uap.type)
        return types
      }
      const reading = Promise.all(runs.map(read))
      await new Promise((resolve) => setTimeout(resolve, 20))
      release()
      const types = await reading
      const results = await Promise.all(runs.map((run) => run.result))
      expect(types.flat().filter((type) => type === 'checkpoint_conflict').length).toBeGreaterThan(
        0,
      )
      expect(results.flatMap(({ turn }) => turn.warnings.map(({ code }) => code))).toContain(
        'checkpoint_conflict',
      )
      expect(errors.some((error) => error instanceof CheckpointConflict)).toBe(true)
      expect(results.map(({ stopReason }) => stopReason)).toEqual(['complete', 'complete'])
      expect((await store.history!('s')).length).toBe(4)
    },
  )

  test('one run after the other is no conflict', async () => {
    const onCheckpointError = vi.fn()
    const store = fileCheckpoints({ dir, fsync: false })
    const worker = agent({
      model: scripted([says('a'), says('b')]),
      checkpoints: store,
      sessionId: 's',
      onCheckpointError,
    })
    const { state } = await worker.generate('go', AgentState.initial())
    await worker.generate('again', state)
    await worker.flush()
    expect(onCheckpointError).not.toHaveBeenCalled()
    expect((await store.history('s')).length).toBe(2)
  })
})
