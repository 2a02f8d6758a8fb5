import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { hashJson, hashText } from '../contract/envelope.ts'
import { filePayloads } from './folder-node.ts'
import { commitFields, openFields } from './redactable.ts'
import { memoryPayloads } from '../contract/evidence.ts'

const payload = { customer: { name: 'Ida', 'a/b': 7 }, items: [{ iban: 'X1' }], total: 3 }
const fields = ['/customer/name', '/items/0/iban', '/customer/a~1b', '/customer/absent']

test('committed fields come back until they are erased; the hash of the rest stays', async () => {
  const store = memoryPayloads()
  const committed = (await commitFields(payload, { fields, store })) as typeof payload
  expect(JSON.stringify(committed)).not.toMatch(/Ida|X1/)
  expect(committed.total).toBe(3)
  const hash = hashJson(committed)
  expect(await openFields(committed, store)).toEqual(payload)
  const { 'uaicp:commitment': commitment } = committed.customer.name as unknown as {
    'uaicp:commitment': `sha256:${string}`
  }
  store.erase(commitment)
  expect(await openFields(committed, store)).toEqual({
    ...payload,
    customer: { ...payload.customer, name: committed.customer.name },
  })
  expect(hashJson(committed)).toBe(hash)
})

test('a commitment to a guessable value cannot be guessed, and equal values commit differently', async () => {
  const store = memoryPayloads()
  const [a, b] = [
    await commitFields({ pin: 1 }, { fields: ['/pin'], store }),
    await commitFields({ pin: 1 }, { fields: ['/pin'], store }),
  ]
  expect(a).not.toEqual(b)
  expect(JSON.stringify(a)).not.toContain(hashJson(1))
})

test('a store that gives something else is noticed; a path that leads nowhere is an error', async () => {
  const store = memoryPayloads()
  const committed = await commitFields(
    { a: 1 },
    { fields: ['/a'], store, salt: () => new Uint8Array(16) },
  )
  const lying = { ...store, get: () => '{"salt":"","value":2}' }
  await expect(openFields(committed, lying)).rejects.toMatchObject({ code: 'COMMITMENT_MISMATCH' })
  await expect(commitFields({ a: 1 }, { fields: ['/b/c'], store })).rejects.toMatchObject({
    code: 'FIELD_UNKNOWN',
  })
  expect(await openFields(await commitFields('whole', { fields: [''], store }), store)).toBe(
    'whole',
  )
})

test('payloads in files: put, get, erase', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'skein-payloads-'))
  const store = filePayloads({ dir })
  const hash = hashText('{"a":1}')
  expect(await store.get(hash)).toBeUndefined()
  await store.put(hash, '{"a":1}', { durable: true })
  await store.put(hash, '{"a":1}')
  expect(await store.get(hash)).toBe('{"a":1}')
  expect(readdirSync(dir)).toHaveLength(1)
  expect(await store.erase(hash)).toBe(true)
  expect(await store.erase(hash)).toBe(false)
  expect(await store.get(hash)).toBeUndefined()
  rmSync(dir, { recursive: true })
})
