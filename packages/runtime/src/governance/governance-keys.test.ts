import {
  chmodSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { toVerifyKey } from '@skein/governance/approvals'
import { memoryStore } from '../store/memory-store.ts'
import { memoryGovernanceKeys, openGovernanceKeys, type GovernanceKeys } from './governance-keys.ts'

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'skein-keys-'))))
afterEach(() => rmSync(folder, { recursive: true }))

const idsOf = ({ approvals, log }: GovernanceKeys): string[] => [approvals.kid, log.kid]

test('keys are made at the first start, for their owner alone, and are the same at the next', async () => {
  const inside = join(folder, 'keys')
  const first = await openGovernanceKeys({ folder: inside })
  expect(readdirSync(inside).toSorted()).toEqual(['approvals.key.json', 'audit-log.key.json'])
  for (const name of readdirSync(inside)) {
    expect(statSync(join(inside, name)).mode & 0o777).toBe(0o600)
  }
  expect(statSync(inside).mode & 0o777).toBe(0o700)
  expect(idsOf(await openGovernanceKeys({ folder: inside }))).toEqual(idsOf(first))
  expect(first.approvals.kid).not.toBe(first.log.kid)
})

test('what a key signs, its public half verifies', async () => {
  const data = new TextEncoder().encode('what is signed')
  for (const keys of [await openGovernanceKeys({ folder }), memoryGovernanceKeys()]) {
    for (const key of [keys.approvals, keys.log]) {
      const verifier = toVerifyKey(key.jwk)
      expect(await verifier.verify(data, await key.sign(data))).toBe(true)
      expect(key.jwk).not.toHaveProperty('d')
    }
  }
})

test('processes that start together agree on one key', async () => {
  const all = await Promise.all(Array.from({ length: 8 }, () => openGovernanceKeys({ folder })))
  expect(new Set(all.map((keys) => idsOf(keys).join())).size).toBe(1)
  expect(readdirSync(folder)).toHaveLength(2)
})

test.each([0o640, 0o604, 0o666, 0o620])('a key file of mode %o is refused', async (mode) => {
  await openGovernanceKeys({ folder })
  const path = join(folder, 'audit-log.key.json')
  chmodSync(path, mode)
  await expect(openGovernanceKeys({ folder })).rejects.toMatchObject({
    code: 'KEY_INVALID',
    message: expect.stringContaining(`${path} can be read by others`) as string,
    hint: expect.stringContaining('chmod 600') as string,
  })
})

test('a broken key file is refused without a word of what is in it', async () => {
  await openGovernanceKeys({ folder })
  const path = join(folder, 'approvals.key.json')
  const { d } = JSON.parse(readFileSync(path, 'utf8')) as { d: string }
  for (const text of [`{"d":"${d}"`, `{"d":"${d}"}`, `"${d}"`, '']) {
    writeFileSync(path, text)
    const error: unknown = await openGovernanceKeys({ folder }).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'KEY_INVALID' })
    const { stack, cause } = error as Error
    expect(`${stack} ${String(cause)} ${JSON.stringify(error)}`).not.toContain(d)
  }
})

test('a store keeps them too', async () => {
  const store = memoryStore()
  const first = await openGovernanceKeys({ store })
  expect(idsOf(await openGovernanceKeys({ store }))).toEqual(idsOf(first))
})

test('keys in memory repeat with the seed, and differ without', () => {
  const ids = idsOf(memoryGovernanceKeys({ seed: 'a' }))
  expect(idsOf(memoryGovernanceKeys({ seed: 'a' }))).toEqual(ids)
  expect(idsOf(memoryGovernanceKeys({ seed: 'b' }))).not.toEqual(ids)
  expect(idsOf(memoryGovernanceKeys())).not.toEqual(idsOf(memoryGovernanceKeys()))
  expect(new Set(ids).size).toBe(2)
})
