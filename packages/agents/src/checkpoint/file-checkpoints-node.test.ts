import files, { mkdtemp, open, readdir, rm, stat, type FileHandle } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { AgentState } from '../index.ts'
import { fileCheckpoints } from './index.ts'

let dir = ''
beforeAll(async () => void (dir = await mkdtemp(join(tmpdir(), 'skein-fsync-'))))
afterAll(() => rm(dir, { recursive: true }))

/** Counts how often files are flushed to the disk while `work` runs. */
async function syncs(work: () => Promise<unknown>): Promise<number> {
  const handle = await open(join(dir, 'probe'), 'w')
  const spy = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'sync')
  try {
    await work()
    return spy.mock.calls.length
  } finally {
    spy.mockRestore()
    await handle.close()
  }
}

const state = AgentState.initial().toJSON()
const entry = { toolCallId: 'a', message: { type: 'tool_result', results: [] } as never }

test('a checkpoint and each recorded call are flushed to the disk, unless fsync is false', async () => {
  const safe = fileCheckpoints({ dir, journal: true })
  // The file and the folder that names it.
  expect(await syncs(() => safe.save('s', state))).toBe(2)
  expect(await syncs(() => safe.record!('s', entry))).toBe(1)
  const quick = fileCheckpoints({ dir, journal: true, fsync: false })
  expect(await syncs(() => quick.save('s', state))).toBe(0)
  expect(await syncs(() => quick.record!('s', entry))).toBe(0)
})

/** Lists, in order, what is flushed, put in place and removed while `work` runs. */
async function operations(work: () => Promise<unknown>): Promise<string[]> {
  const done: string[] = []
  const nameOf = (file: unknown): string => basename(String(file)).replace(/\.[^.]+\.tmp$/, '')
  const { open: reallyOpen, rename, rm: remove } = files
  const spies = [
    vi.spyOn(files, 'open').mockImplementation(async (file, ...rest) => {
      const handle = await reallyOpen(file, ...rest)
      const sync = handle.sync.bind(handle)
      handle.sync = async () => {
        await sync()
        done.push(`flush ${nameOf(file)}`)
      }
      return handle
    }),
    vi.spyOn(files, 'rename').mockImplementation(async (from, to) => {
      await rename(from, to)
      done.push(`replace ${nameOf(to)}`)
    }),
    vi.spyOn(files, 'rm').mockImplementation(async (file, options) => {
      await remove(file, options)
      done.push(`remove ${nameOf(file)}`)
    }),
  ]
  try {
    await work()
    return done
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
}

/** A state of which a save that another one follows writes only the change. */
const long = { ...state, metadata: { text: 'x'.repeat(100_000) } }

describe('what a loss of power at any moment leaves behind can be read', () => {
  test('a checkpoint is on the disk before it replaces the old one, and the journal goes last', async () => {
    const store = fileCheckpoints({ dir, journal: true })
    await store.save('order', state)
    await store.record!('order', entry)
    expect(await operations(() => store.save('order', { ...state, step: 1 }))).toEqual([
      'flush checkpoint.json',
      'replace checkpoint.json',
      // The folder: without it a power cut could bring back the old checkpoint.
      'flush order',
      'replace metadata.json',
      'remove checkpoint.json.gz',
      'remove journal.ndjson',
    ])
  })

  test('the version of a save that another follows is on the disk before the journal goes', async () => {
    const store = fileCheckpoints({ dir, journal: true })
    await store.save('long', long)
    const save = () => store.save('long', { ...long, step: 1 }, { isFollowed: true })
    expect(await operations(save)).toEqual([
      'flush 00000001.ndjson',
      'replace metadata.json',
      'remove journal.ndjson',
    ])
    expect(await operations(() => store.record!('long', entry))).toEqual(['flush journal.ndjson'])
  })

  test('without fsync nothing is flushed', async () => {
    const store = fileCheckpoints({ dir, fsync: false })
    for (const next of [long, { ...long, step: 1 }, { ...state, step: 2 }]) {
      const done = await operations(() => store.save('quick', next))
      expect(done.filter((one) => one.startsWith('flush'))).toEqual([])
    }
  })
})

test('a state that is changed after its save is saved as it was, and then as it is', async () => {
  const store = fileCheckpoints({ dir })
  const mine = { ...long, metadata: { ...long.metadata, count: 1 } }
  const { checkpointId } = (await store.save('changed', mine))!
  mine.metadata.count = 2
  await store.save('changed', mine)
  expect((await store.loadVersion!('changed', checkpointId))?.metadata['count']).toBe(1)
  expect((await store.load('changed'))?.metadata['count']).toBe(2)
})

test('a save that fails leaves the checkpoint before it, and no file of its own', async () => {
  const store = fileCheckpoints({ dir })
  await store.save('full', state)
  const { open: reallyOpen } = files
  const spy = vi.spyOn(files, 'open').mockImplementation(async (file, ...rest) => {
    const handle = await reallyOpen(file, ...rest)
    if (String(file).endsWith('.tmp'))
      handle.writeFile = () => Promise.reject(new Error('ENOSPC: no space left on device'))
    return handle
  })
  try {
    await expect(store.save('full', { ...long, step: 7 })).rejects.toThrow('ENOSPC')
  } finally {
    spy.mockRestore()
  }
  const names = await readdir(join(dir, 'full'))
  expect(names.filter((name) => name.endsWith('.tmp'))).toEqual([])
  expect(names).toContain('checkpoint.json')
})

test.skipIf(process.platform === 'win32')('nobody else may read what is stored', async () => {
  const store = fileCheckpoints({ dir, journal: true })
  await store.save('private', state)
  await store.record!('private', entry)
  const modes: Record<string, number> = {}
  for (const name of await readdir(join(dir, 'private'), { recursive: true }))
    modes[name] = (await stat(join(dir, 'private', name))).mode & 0o077
  expect(Object.keys(modes)).toContain('journal.ndjson')
  expect(Object.keys(modes)).toContain(join('versions', '00000001.ndjson'))
  expect(Object.values(modes).every((others) => others === 0)).toBe(true)
  expect((await stat(join(dir, 'private'))).mode & 0o077).toBe(0)
})
