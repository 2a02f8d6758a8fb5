import { AgentState } from '@skein/agents'
import {
  type CheckpointMetadata,
  encryptedCheckpoints,
  fileCheckpoints,
} from '@skein/agents/checkpoint'
import { describeCheckpointStore, scriptedAgent } from '@skein/agents/testing'
import { UserMessage } from '@skein/ai'
import { calls, says } from '@skein/ai/testing'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { uuidV4 } from './support/state.ts'
import { add } from './support/tools.ts'
import { countOf } from '../support/counts.ts'
import { suiteFunctions } from '../support/suite-functions.ts'

let dir: string
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'skein-checkpoints-'))))
afterEach(() => rmSync(dir, { recursive: true }))

const stateAt = (step: number, text = 'hello'): ReturnType<AgentState['toJSON']> =>
  AgentState.initial().withMessage(new UserMessage(text)).withStep(step).toJSON()
const read = (...path: string[]): unknown => JSON.parse(readFileSync(join(dir, ...path), 'utf8'))

test('UAP-161 the layout is <dir>/<session>/checkpoint.json and metadata.json', async () => {
  const state = stateAt(1)
  await fileCheckpoints({ dir }).save('my-session', state)
  expect(readdirSync(dir)).toEqual(['my-session'])
  expect(readdirSync(join(dir, 'my-session')).toSorted()).toEqual([
    'checkpoint.json',
    'metadata.json',
    'versions',
  ])
  expect(read('my-session', 'checkpoint.json')).toEqual(state)
})

test('UAP-161 the default folder is .checkpoints', async () => {
  const cwd = vi.spyOn(process, 'cwd').mockReturnValue(dir)
  try {
    await fileCheckpoints().save('s', stateAt(1))
  } finally {
    cwd.mockRestore()
  }
  expect(existsSync(join(dir, '.checkpoints', 's', 'checkpoint.json'))).toBe(true)
})

test('UAP-161 no session id leads out of the folder or into another session', async () => {
  const store = fileCheckpoints({ dir: join(dir, 'inner'), fsync: false })
  const ids = [
    '../out',
    '..',
    '.',
    '/etc/passwd',
    'a/../../b',
    'C:\\x',
    'a\0b',
    '%2e%2e',
    'a',
    'A/',
  ]
  for (const id of ids) await store.save(id, stateAt(1, id))
  expect(readdirSync(dir)).toEqual(['inner'])
  expect(readdirSync(join(dir, 'inner')).length).toBe(ids.length)
  for (const id of ids)
    expect((await store.load(id))?.messages[0]?.content).toMatchObject([{ text: id }])
  expect(await store.list()).toEqual(ids.toSorted())
  for (const id of ['', 'x'.repeat(300), '\ud800'])
    await expect(store.save(id, stateAt(1))).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
})

test('UAP-030 UAP-160 metadata holds session, step, agent, time, and a new UUID per checkpoint', async () => {
  const store = fileCheckpoints({ dir })
  const seen: CheckpointMetadata[] = []
  const coder = scriptedAgent(
    [calls('add', { a: 1, b: 1 }), calls('add', { a: 2, b: 2 }), says('.')],
    {
      tools: [add],
      sessionId: 's',
      durability: 'sync',
      checkpoints: {
        ...store,
        async save(id, state) {
          await store.save(id, state)
          seen.push(read('s', 'metadata.json') as CheckpointMetadata)
        },
      },
    },
  )
  await coder.generate('go', AgentState.initial())
  expect(seen.map(({ step }) => step)).toEqual([1, 2, 3])
  expect(new Set(seen.map(({ checkpointId }) => checkpointId)).size).toBe(3)
  for (const metadata of seen) {
    expect(metadata).toEqual({
      sessionId: 's',
      checkpointId: expect.stringMatching(uuidV4),
      timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
      step: expect.any(Number),
      agentId: coder.id,
    })
  }
  expect(await store.loadMetadata('s')).toEqual(seen.at(-1))
})

test('UAP-168 two writers, many saves: the file always parses, and the latest wins', async () => {
  const stores = [fileCheckpoints({ dir, fsync: false }), fileCheckpoints({ dir, fsync: false })]
  const rounds = countOf({ fast: 40, all: 200, deep: 1000 })
  let isWriting = true
  const saves = Array.from({ length: rounds }, (_, step) =>
    stores[step % 2]!.save('s', stateAt(step, 'x'.repeat((step * 37) % 5000))),
  )
  const reader = (async () => {
    let reads = 0
    while (isWriting) {
      if (existsSync(join(dir, 's', 'checkpoint.json'))) {
        expect(read('s', 'checkpoint.json')).toHaveProperty('version')
        reads++
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
    return reads
  })()
  await Promise.all(saves)
  isWriting = false
  expect(await reader).toBeGreaterThan(0)
  expect((await stores[0]!.load('s'))?.step).toBe(rounds - 1)
  expect((await stores[0]!.loadMetadata('s'))?.step).toBe(rounds - 1)
  expect(readdirSync(join(dir, 's')).toSorted()).toEqual([
    'checkpoint.json',
    'metadata.json',
    'versions',
  ])
})

test('UAP-168 another process saves between two saves of this one: the latest wins', async () => {
  const here = fileCheckpoints({ dir, fsync: false })
  vi.resetModules() // the modules of another process
  const other = await import('@skein/agents/checkpoint')
  const there = other.fileCheckpoints({ dir, fsync: false })
  // So long that a save writes what has changed, not the whole state.
  let state = AgentState.initial().withMessage(new UserMessage('x'.repeat(200_000)))
  for (const [step, store] of [here, here, there, there, here, there, here].entries()) {
    state = state.withMessage(new UserMessage(`step ${step}`)).withStep(step)
    const saved = await store.save('s', state.toJSON())
    for (const reader of [here, there]) {
      expect(await reader.load('s'), `step ${step}`).toEqual(state.toJSON())
      expect(await reader.loadVersion('s', saved!.checkpointId)).toEqual(state.toJSON())
    }
  }
  expect((await here.history('s')).map(({ step }) => step)).toEqual([0, 1, 2, 3, 4, 5, 6])
})

test('UAP-168 compressed files are smaller, and either form is read by either store', async () => {
  const plain = fileCheckpoints({ dir })
  const packed = fileCheckpoints({ dir, compress: true })
  const large = stateAt(1, 'thread '.repeat(5000))
  await plain.save('s', large)
  const before = statSync(join(dir, 's', 'checkpoint.json')).size
  expect(await packed.load('s')).toEqual(large)

  await packed.save('s', { ...large, step: 2 })
  expect(readdirSync(join(dir, 's')).toSorted()).toEqual([
    'checkpoint.json.gz',
    'metadata.json',
    'versions',
  ])
  expect(statSync(join(dir, 's', 'checkpoint.json.gz')).size * 10).toBeLessThan(before)
  expect((await plain.load('s'))?.step).toBe(2)
  expect(await plain.list()).toEqual(['s'])

  await plain.save('s', { ...large, step: 3 })
  expect((await packed.load('s'))?.step).toBe(3)
})

test('UAP-168 a save that fails leaves the old checkpoint and no litter', async () => {
  const store = fileCheckpoints({ dir })
  await store.save('s', stateAt(1))
  const circular = { ...stateAt(2), metadata: {} as Record<string, unknown> }
  circular.metadata['self'] = circular
  await expect(store.save('s', circular as never)).rejects.toThrow()
  rmSync(join(dir, 's', 'metadata.json'))
  await import('node:fs/promises').then(({ mkdir }) => mkdir(join(dir, 's', 'metadata.json')))
  await expect(store.save('s', stateAt(3))).rejects.toThrow()
  expect(readdirSync(join(dir, 's')).filter((name) => name.endsWith('.tmp'))).toEqual([])
  expect((await store.load('s'))?.step).toBe(3)
})

describe('UAP-169 files that cannot be read', () => {
  const broken = {
    'cut off': '{"version":"1.0.0","mess',
    empty: '',
    'another JSON': '[1,2]',
    'no state': '{"version":"1.0.0"}',
    'broken gzip': Buffer.from([0x1f, 0x8b, 8, 0, 1, 2, 3]),
  }
  test.each(Object.entries(broken))('UAP-169 %s: null, with a report', async (_, data) => {
    const onError = vi.fn()
    const store = fileCheckpoints({ dir, onError })
    await store.save('s', stateAt(1))
    writeFileSync(join(dir, 's', 'checkpoint.json'), data)
    writeFileSync(join(dir, 's', 'metadata.json'), data)
    expect(await store.load('s')).toBeNull()
    expect(await store.loadMetadata('s')).toBeNull()
    expect(onError.mock.calls).toEqual([
      [expect.objectContaining({ message: expect.stringContaining('checkpoint.json') }), 's'],
      [expect.objectContaining({ message: expect.stringContaining('metadata.json') }), 's'],
    ])
    await store.save('s', stateAt(2))
    expect((await store.load('s'))?.step).toBe(2)
  })

  test('UAP-169 a torn last line of a journal loses that line alone', async () => {
    const onError = vi.fn()
    const store = fileCheckpoints({ dir, journal: true, onError })
    const call = (toolCallId: string) => ({ toolCallId, toolName: 'pay', arguments: {} })
    const { AssistantMessage, ToolResultMessage, messageToJSON } = await import('@skein/ai')
    const asked = AgentState.initial().withMessages([
      new UserMessage('pay'),
      new AssistantMessage('', [call('a'), call('b')]),
    ])
    const entry = (toolCallId: string) => ({
      toolCallId,
      message: messageToJSON(new ToolResultMessage([{ toolCallId, result: `paid ${toolCallId}` }])),
    })
    await store.save('s', asked.toJSON())
    await store.record?.('s', entry('a'))
    writeFileSync(join(dir, 's', 'journal.ndjson'), '{"toolCallId":"b","mess', { flag: 'a' })
    const results = async () =>
      AgentState.fromJSON(await store.load('s')).suspension?.answered?.results.map(
        ({ toolCallId }) => toolCallId,
      )
    expect(await results()).toEqual(['a'])
    expect(onError).toHaveBeenCalledTimes(1)
    await store.record?.('s', entry('b'))
    expect(await results()).toEqual(['a', 'b'])
  })
})

describe('UAP-169 encryption at rest', () => {
  const key = crypto.getRandomValues(new Uint8Array(32))

  test('UAP-169 nothing said is on the disk; another key or another session opens nothing', async () => {
    const inner = fileCheckpoints({ dir })
    const store = encryptedCheckpoints(inner, { key })
    const state = stateAt(3, 'the launch code is 0000')
    await store.save('s', state)
    expect(readFileSync(join(dir, 's', 'checkpoint.json'), 'utf8')).not.toMatch(/launch|0000"/)
    expect(await store.load('s')).toEqual(state)
    expect((await store.loadMetadata?.('s'))?.step).toBe(3)

    const other = encryptedCheckpoints(inner, { key: new Uint8Array(32) })
    await expect(other.load('s')).rejects.toThrow('another key')
    await inner.save('thief', (await inner.load('s'))!)
    await expect(store.load('thief')).rejects.toThrow('another key')
    await inner.save('plain', state)
    await expect(store.load('plain')).rejects.toThrow('not encrypted')
    const short = encryptedCheckpoints(inner, { key: new Uint8Array(5) })
    await expect(short.load('s')).rejects.toMatchObject({ code: 'INVALID_REQUEST' })
  })

  test('UAP-169 files are for their owner alone', async () => {
    await fileCheckpoints({ dir }).save('s', stateAt(1))
    expect(statSync(join(dir, 's')).mode & 0o77).toBe(0)
    expect(statSync(join(dir, 's', 'checkpoint.json')).mode & 0o77).toBe(0)
  })
})

describeCheckpointStore(suiteFunctions('UAP-159 '), {
  name: 'of files',
  open: () => fileCheckpoints({ dir, journal: true }),
  reopen: () => fileCheckpoints({ dir }),
})
