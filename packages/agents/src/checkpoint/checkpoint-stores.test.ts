import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { AgentState } from '../state/state.ts'
import { describeCheckpointStore } from '../testing/index.ts'
import {
  encryptedCheckpoints,
  fileCheckpoints,
  memoryCheckpoints,
  sqliteCheckpoints,
  type CheckpointStore,
  type FileCheckpointOptions,
} from './index.ts'
import { suiteFunctions } from '../../../../conformance/support/suite-functions.ts'

const root = mkdtempSync(join(tmpdir(), 'checkpoints-'))
afterAll(() => rmSync(root, { recursive: true }))

const functions = suiteFunctions()
const dirs = new Map<CheckpointStore, string>()

function files(options: FileCheckpointOptions = {}): CheckpointStore {
  const dir = join(root, crypto.randomUUID())
  const store = fileCheckpoints({ dir, fsync: false, ...options })
  dirs.set(store, dir)
  return store
}

const reopen = (store: CheckpointStore): CheckpointStore =>
  fileCheckpoints({ dir: dirs.get(store)! })

describeCheckpointStore(functions, { name: 'memory', open: () => memoryCheckpoints() })
describeCheckpointStore(functions, {
  name: 'memory with a journal',
  open: () => memoryCheckpoints({ journal: true }),
})
describeCheckpointStore(functions, { name: 'files', open: () => files(), reopen })
describeCheckpointStore(functions, {
  name: 'compressed files with a journal',
  open: () => files({ compress: true, journal: true }),
  reopen,
})
const databases = new Map<CheckpointStore, string>()
function database(path = join(root, `${crypto.randomUUID()}.db`)): CheckpointStore {
  const store = sqliteCheckpoints({ path, journal: true })
  databases.set(store, path)
  return store
}
describeCheckpointStore(functions, {
  name: 'SQLite',
  open: () => database(),
  reopen: (store) => database(databases.get(store)),
})
describeCheckpointStore(functions, {
  name: 'encrypted files',
  open: () => encryptedCheckpoints(files(), { key: new Uint8Array(32) }),
})

/** The suite itself: a store with a fault must fail it. */
const faults: Readonly<Record<string, (store: CheckpointStore) => CheckpointStore>> = {
  'keeps the first state': (store) => ({
    ...store,
    save: async (id, state) => void ((await store.load(id)) ?? (await store.save(id, state))),
  }),
  'loses metadata of messages': (store) => ({
    ...store,
    load: async (id) => {
      const state = await store.load(id)
      const messages = state?.messages.map((message) => ({ ...message, metadata: {} }))
      return state && { ...state, messages: messages! }
    },
  }),
  'mixes sessions up': (store) => ({
    ...store,
    save: (id, state) => store.save(id.toLowerCase().replace(/[^a-z]/g, ''), state),
    load: (id) => store.load(id.toLowerCase().replace(/[^a-z]/g, '')),
  }),
  'deletes nothing': (store) => ({ ...store, delete: async () => {} }),
  'throws for unknown sessions': (store) => ({
    ...store,
    load: async (id) => (await store.load(id)) ?? Promise.reject(new Error('no such session')),
  }),
}

describe('the suite finds a store that', () => {
  test.each(Object.entries(faults))('%s', async (_, wrong) => {
    const bodies: (() => Promise<void>)[] = []
    describeCheckpointStore(
      { describe: (_, body) => body(), test: (_, body) => bodies.push(body) },
      { name: 'wrong', open: () => wrong(memoryCheckpoints()) },
    )
    const results = await Promise.allSettled(bodies.map((body) => body()))
    expect(results.filter(({ status }) => status === 'rejected').length).toBeGreaterThan(0)
  })
})

test.each<[string, () => CheckpointStore]>([
  ['memory', () => memoryCheckpoints()],
  ['files', () => files()],
  ['SQLite', () => database()],
  ['encrypted', () => encryptedCheckpoints(files(), { key: new Uint8Array(32) })],
])('UAP-030 %s: each save has an id of its own, the same wherever it is named', async (_, open) => {
  const store = open()
  const state = AgentState.initial().toJSON()
  const returned = []
  const named = []
  for (let save = 0; save < 3; save++) {
    returned.push(await store.save('s', state))
    named.push(await store.loadMetadata!('s'))
  }
  const history = await store.history!('s')
  expect(returned).toEqual(history)
  expect(named).toEqual(history)
  const ids = history.map(({ checkpointId }) => checkpointId)
  expect(new Set(ids).size).toBe(3)
  const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
  for (const id of ids) expect(id).toMatch(uuid)
  for (const id of ids) expect(await store.loadVersion!('s', id)).toEqual(state)
})
