import { hash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { onTestFinished } from 'vitest'
import { readSqliteStore, sqliteStore, type StoreRow } from '@skein/runtime'

/** A path in a folder of its own; gone after the test. */
export function newPath(ending: string): string {
  const folder = mkdtempSync(join(tmpdir(), 'skein-backup-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, `store.${ending}`)
}

/** What a store may hold, in a few words. */
export interface Given {
  readonly threads: readonly {
    readonly title: string | null
    readonly values: readonly unknown[]
    readonly content: Uint8Array
    readonly costUsd: number
    readonly wakeAt: number | null
    readonly claims: number
  }[]
  readonly userValues: readonly { readonly key: string; readonly value: string }[]
  readonly spent: number
  readonly counter: number
}

const text = fc.string({ unit: 'binary', maxLength: 12 }).map((one) => one.replaceAll('\0', ''))
export const givenArbitrary: fc.Arbitrary<Given> = fc.record({
  threads: fc.array(
    fc.record({
      title: fc.option(text),
      values: fc.array(fc.jsonValue({ maxDepth: 2, stringUnit: 'binary' }), { maxLength: 4 }),
      content: fc.uint8Array({ maxLength: 40 }),
      costUsd: fc.double({ min: 0, max: 1e6, noNaN: true }),
      wakeAt: fc.option(fc.integer({ min: 0, max: 2 ** 42 })),
      claims: fc.nat({ max: 2 }),
    }),
    { maxLength: 4 },
  ),
  userValues: fc.array(fc.record({ key: fc.constantFrom('a', 'b', 'c'), value: text }), {
    maxLength: 5,
  }),
  spent: fc.nat({ max: 3 }),
  counter: fc.double({ min: 0, max: 1e9, noNaN: true }),
})

/** Writes a store through its public API, with everything that a runtime writes. */
export async function storeOf(given: Given): Promise<string> {
  const path = newPath('db')
  const store = sqliteStore({ path })
  const at = '2026-01-02T03:04:05.678Z'
  for (const [index, thread] of given.threads.entries()) {
    const id = `t${index}`
    const name = hash('sha256', thread.content)
    await store.commit({
      point: 'test',
      threads: [
        {
          id,
          create: {
            tenant: 'acme',
            owner: index % 2 ? 'ann' : null,
            agent: 'support',
            parentId: index === 0 ? null : 't0',
            rootId: 't0',
            title: thread.title,
            tags: ['a', 'b'],
            clientId: `c${index}`,
            createdAt: 1000 + index,
          },
          append: thread.values.map(
            (value) => ({ type: 'value_set', key: 'k', value, at }) as never,
          ),
          head: { costUsd: thread.costUsd, tokens: index, lifecycle: 'waiting', waiting: 1 },
          wake: { exactly: thread.wakeAt },
        },
      ],
      blobs: [{ hash: name, bytes: thread.content }],
      audit: [{ tree: 't0', requestId: `r${index}`, seq: 0, line: `{"line":${index}}` }],
      spent: Array.from({ length: given.spent }, (_, n) => ({ jti: `${id}-${n}`, exp: 5 })),
    })
    for (let claim = 0; claim < thread.claims; claim++)
      await store.claim(id, { owner: 'someone', leaseMs: 1000 })
  }
  for (const { key, value } of given.userValues)
    await store.commit({
      point: 'test',
      threads: [],
      userValues: [{ tenant: 'acme', user: 'ann', key, value, at }],
      counters: [{ name: 'limit spent', add: given.counter }],
    })
  await store.setSetting('webhooks', { at })
  await store.close()
  return path
}

export function rowsOf(path: string): StoreRow[] {
  const store = readSqliteStore(path)
  const rows = [...store.rows()]
  void store.close()
  return rows
}
