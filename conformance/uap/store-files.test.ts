/** The files of `fileCheckpoints` after a crash, under another name, and when old versions go. */
import { AgentState, type AgentStateJSON } from '@skein/agents'
import { fileCheckpoints } from '@skein/agents/checkpoint'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'

const root = mkdtempSync(join(tmpdir(), 'store-files-'))
afterAll(() => rmSync(root, { recursive: true }))

const stateAt = (step: number, length = 1): AgentStateJSON =>
  AgentState.initial().withStep(step).withMetadata('text', `${step}`.repeat(length)).toJSON()

test('UAP-168 if a crash left both forms of a checkpoint, the newer one counts', async () => {
  const names = ['checkpoint.json', 'checkpoint.json.gz']
  for (const newer of names) {
    const dir = mkdtempSync(join(root, 'both-'))
    const options = { dir, fsync: false }
    await fileCheckpoints({ ...options, compress: newer === names[0] }).save('s', stateAt(1))
    rmSync(join(dir, 's', 'versions'), { recursive: true })
    const old = names.find((name) => name !== newer)!
    renameSync(join(dir, 's', old), join(dir, 'kept'))
    await fileCheckpoints({ ...options, compress: newer !== names[0] }).save('s', stateAt(2))
    rmSync(join(dir, 's', 'versions'), { recursive: true })
    renameSync(join(dir, 'kept'), join(dir, 's', old))
    utimesSync(join(dir, 's', old), 1000, 1000)
    expect((await fileCheckpoints(options).load('s'))?.step).toBe(2)
  }
})

test('UAP-168 the form of a file is recognised by its content, not by its name', async () => {
  const dir = mkdtempSync(join(root, 'names-'))
  const state = stateAt(3)
  await fileCheckpoints({ dir, fsync: false, compress: true }).save('s', state)
  renameSync(join(dir, 's', 'checkpoint.json.gz'), join(dir, 's', 'checkpoint.json'))
  expect(await fileCheckpoints({ dir }).load('s')).toEqual(state)
})

test('UAP-168 a checkpoint that another program wrote is the newest state', async () => {
  const dir = mkdtempSync(join(root, 'other-'))
  const store = fileCheckpoints({ dir, fsync: false })
  await store.save('s', stateAt(1))
  const theirs = stateAt(9)
  writeFileSync(join(dir, 's', 'checkpoint.json'), JSON.stringify(theirs))
  expect(await store.load('s')).toEqual(theirs)
  await store.save('s', stateAt(10))
  expect((await store.load('s'))?.step).toBe(10)
})

test('UAP-168 keepVersions keeps that many versions, and not one less', async () => {
  const dir = mkdtempSync(join(root, 'kept-'))
  const store = fileCheckpoints({ dir, fsync: false, keepVersions: 3 })
  // Each state is much longer than the one before, so that each is stored whole.
  for (let step = 1; step <= 6; step++) await store.save('s', stateAt(step, 20_000 * 2 ** step))
  const history = await store.history('s')
  expect(history.map(({ step }) => step)).toEqual([4, 5, 6])
  for (const { checkpointId, step } of history)
    expect((await store.loadVersion('s', checkpointId))?.step).toBe(step)
})

test('UAP-161 what is listed can be loaded: other folders are no sessions', async () => {
  const dir = mkdtempSync(join(root, 'list-'))
  const store = fileCheckpoints({ dir, fsync: false })
  const ids = ['s', 'a/b', '..', 'ü', 'x!']
  for (const id of ids) await store.save(id, stateAt(1))
  // Names that this store does not make, and a folder without a checkpoint.
  for (const name of ['a%2fb', 'x!', '%zz', 'copy of s'])
    cpSync(join(dir, 's'), join(dir, name), { recursive: true })
  mkdirSync(join(dir, 'empty'))
  expect(await store.list()).toEqual(ids.toSorted())
})
