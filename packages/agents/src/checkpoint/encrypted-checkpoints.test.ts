import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AssistantMessage, UserMessage } from '@skein/ai'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { AgentState } from '../state/state.ts'
import {
  type CheckpointStore,
  encryptedCheckpoints,
  fileCheckpoints,
  memoryCheckpoints,
  sqliteCheckpoints,
} from './index.ts'

let dir: string
beforeEach(() => (dir = mkdtempSync(join(tmpdir(), 'encrypted-'))))
afterEach(() => rmSync(dir, { recursive: true }))

const key = new Uint8Array(32).fill(7)

/** Saves one version after each of `steps` messages of 1 kB, and returns the states. */
async function fill(store: CheckpointStore, steps: number): Promise<AgentState[]> {
  const states: AgentState[] = []
  let state = AgentState.initial()
  for (let step = 1; step <= steps; step++) {
    state = state.withMessage(new UserMessage(`${step} `.padEnd(1_000, 'x'))).withStep(step)
    states.push(state)
    await store.save('s', state.toJSON())
  }
  return states
}

function bytesOf(path: string): number {
  const { size } = statSync(path)
  if (!statSync(path).isDirectory()) return size
  return readdirSync(path).reduce((sum, name) => sum + bytesOf(join(path, name)), 0)
}

test.each([
  ['files', (path: string) => fileCheckpoints({ dir: path, fsync: false })],
  ['SQLite', (path: string) => sqliteCheckpoints({ path: `${path}.db` })],
])('the versions of encrypted %s grow linearly with the steps', async (_, open) => {
  const bytes: number[] = []
  for (const steps of [200, 400]) {
    const path = join(dir, `of-${steps}`)
    const inner = open(path)
    const store = encryptedCheckpoints(inner, { key })
    const states = await fill(store, steps)
    expect(await store.load('s')).toEqual(states.at(-1)!.toJSON())
    const history = await store.history!('s')
    expect(history.length).toBe(steps)
    for (const at of [0, 41, 99])
      expect(await store.loadVersion!('s', history[at]!.checkpointId)).toEqual(states[at]!.toJSON())
    if ('close' in inner && typeof inner.close === 'function') inner.close()
    bytes.push(readdirSync(dir).filter((name) => name.startsWith(`of-${steps}`)).reduce((sum, name) => sum + bytesOf(join(dir, name)), 0)) // prettier-ignore
  }
  expect(bytes[1]! / bytes[0]!).toBeLessThan(2.6)
  expect(bytes[1]!).toBeLessThan(400 * 12_000)
})

test('a shortened history, a second process and a failed save are read back as they were saved', async () => {
  const inner = memoryCheckpoints()
  const store = encryptedCheckpoints(inner, { key })
  const states = await fill(store, 20)
  const short = states.at(-1)!.withContext([new UserMessage('summary'), new AssistantMessage('ok')])
  await store.save('s', short.toJSON())
  expect(await store.load('s')).toEqual(short.toJSON())
  const second = encryptedCheckpoints(inner, { key })
  const next = short.withMessage(new UserMessage('more'))
  await second.save('s', next.toJSON())
  expect(await store.load('s')).toEqual(next.toJSON())
  const last = next.withMessage(new UserMessage('last'))
  await expect(store.save('s', last.toJSON(), { expected: 'other' })).rejects.toThrow('changed')
  expect(await store.load('s')).toEqual(next.toJSON())
  await store.save('s', last.toJSON())
  expect(await store.load('s')).toEqual(last.toJSON())
})

test('UAP-159 what the inner store cannot do, the encrypted one does not promise', () => {
  const { save, load, delete: remove, list } = memoryCheckpoints()
  const bare = encryptedCheckpoints({ save, load, delete: remove, list }, { key })
  expect([bare.loadMetadata, bare.history, bare.loadVersion]).toEqual([
    undefined,
    undefined,
    undefined,
  ])
  const whole = encryptedCheckpoints(memoryCheckpoints(), { key })
  for (const name of ['loadMetadata', 'history', 'loadVersion'] as const)
    expect(whole[name], name).toBeTypeOf('function')
})

test('a session that was deleted begins anew', async () => {
  const inner = memoryCheckpoints()
  const store = encryptedCheckpoints(inner, { key })
  await fill(store, 3)
  await store.delete('s')
  const [state] = await fill(store, 1)
  expect(await store.load('s')).toEqual(state!.toJSON())
  expect((await inner.load('s'))!.reasoning!.length).toBe(1)
})

test('parts in another order, or of another session, are refused', async () => {
  const inner = memoryCheckpoints()
  const store = encryptedCheckpoints(inner, { key })
  await fill(store, 4)
  const saved = (await inner.load('s'))!
  const [first, second, ...rest] = saved.reasoning!
  expect(rest.length).toBeGreaterThan(0)
  for (const reasoning of [
    [first!, ...rest],
    [second!, first!, ...rest],
  ]) {
    await inner.save('s', { ...saved, reasoning })
    await expect(store.load('s')).rejects.toThrow('another key, or changed')
  }
  await inner.save('thief', saved)
  await expect(store.load('thief')).rejects.toThrow('another key, or changed')
})

test('a checkpoint of an older version, with the whole state in one part, is read', async () => {
  const state = AgentState.initial().withMessage(new UserMessage('old')).toJSON()
  const iv = crypto.getRandomValues(new Uint8Array(12))
  const text = new TextEncoder()
  const imported = await crypto.subtle.importKey('raw', key, 'AES-GCM', false, ['encrypt'])
  const data = await crypto.subtle.encrypt(
    { name: 'AES-GCM', iv, additionalData: text.encode('s') },
    imported,
    text.encode(JSON.stringify(state)),
  )
  const sealed = [iv, new Uint8Array(data)].map((one) => Buffer.from(one).toString('base64')).join('.') // prettier-ignore
  const inner = memoryCheckpoints()
  await inner.save('s', { ...AgentState.initial().toJSON(), id: state.id, metadata: { sealed } })
  expect(await encryptedCheckpoints(inner, { key }).load('s')).toEqual(state)
})
