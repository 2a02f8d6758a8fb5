import { hash } from 'node:crypto'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { loadSqliteStore, sqliteStore, type StoreRow } from '@skein/runtime'
import { readBackup, RowDigest, writeBackup } from '../src/backup/backup-file.ts'
import { exampleAgents, skein, startDev, tempFolder } from './kit.ts'
import { countOf } from '../../../conformance/support/counts.ts'
import { type Given, givenArbitrary, newPath, rowsOf, storeOf } from './stores.ts'

const about = { from: 'sqlite', at: '2026-01-02T03:04:05.678Z' }

describe('backup', { timeout: 120_000 }, () => {
  test('SQLite → file → SQLite gives the same rows, and a store that is whole', async () => {
    await fc.assert(
      fc.asyncProperty(givenArbitrary, fc.boolean(), async (given, isPacked) => {
        const from = await storeOf(given)
        const file = newPath(isPacked ? 'jsonl.gz' : 'jsonl')
        await writeBackup(file, rowsOf(from), about)
        const to = newPath('db')
        await loadSqliteStore(to, readBackup(file))
        expect(rowsOf(to)).toEqual(rowsOf(from))
        const store = sqliteStore({ path: to })
        expect(await store.check()).toEqual([])
        const old = sqliteStore({ path: from })
        expect(await store.totals()).toEqual(await old.totals())
        // The versions of values continue where they were, so that no reader takes a new one for an old one.
        const of = { tenant: 'acme', user: 'ann' }
        const last = Math.max(0, ...(await old.userValues(of)).map(({ version }) => version))
        const userValues = [{ ...of, key: 'z', value: 1, at: about.at }]
        await store.commit({ point: 'test', threads: [], userValues })
        expect((await store.userValues(of, 'z'))[0]!.version).toBeGreaterThan(last)
        await Promise.all([store.close(), old.close()])
      }),
      { numRuns: countOf({ fast: 8, all: 25, deep: 25 }) },
    )
  })

  test('any byte that changes, and any line that goes or moves, is found; nothing is restored', async () => {
    const given: Given = {
      threads: [
        {
          title: 'Ä',
          values: [1, 'two'],
          content: new Uint8Array([1, 2, 3]),
          costUsd: 0.1,
          wakeAt: 7,
          claims: 1,
        },
      ],
      userValues: [{ key: 'a', value: 'x' }],
      spent: 1,
      counter: 2,
    }
    const from = await storeOf(given)
    const file = newPath('jsonl')
    await writeBackup(file, rowsOf(from), about)
    const whole = readFileSync(file)
    const lines = whole.toString().trimEnd().split('\n')
    const damage = fc.oneof(
      fc
        .record({ at: fc.nat({ max: whole.length - 1 }), bit: fc.nat({ max: 7 }) })
        .map(({ at, bit }) => whole.with(at, whole[at]! ^ (1 << bit))),
      fc
        .nat({ max: lines.length - 1 })
        .map((gone) => Buffer.from(`${lines.toSpliced(gone, 1).join('\n')}\n`)),
      fc
        .nat({ max: lines.length - 2 })
        .map((at) =>
          Buffer.from(`${lines.toSpliced(at, 2, lines[at + 1]!, lines[at]!).join('\n')}\n`),
        ),
      fc.nat({ max: whole.length - 2 }).map((end) => whole.subarray(0, end)),
    )
    await fc.assert(
      fc.asyncProperty(damage, async (bytes) => {
        const broken = newPath('jsonl')
        writeFileSync(broken, bytes)
        const to = newPath('db')
        const loading = loadSqliteStore(to, readBackup(broken))
        await expect(loading).rejects.toMatchObject({ code: 'BACKUP_DAMAGED' })
        expect(existsSync(to)).toBe(false)
        expect(existsSync(`${to}.part`)).toBe(false)
      }),
      { numRuns: countOf({ fast: 30, all: 150, deep: 150 }) },
    )
  })

  test('a large content is written in parts', async () => {
    const bytes = new Uint8Array(1_500_000).map((_, index) => index % 251)
    const name = hash('sha256', bytes)
    const file = newPath('jsonl')
    await writeBackup(file, [{ type: 'blob', hash: name, bytes }], about)
    const rows: StoreRow[] = []
    for await (const row of readBackup(file)) rows.push(row)
    expect(rows).toEqual([{ type: 'blob', hash: name, bytes: Buffer.from(bytes) }])
    expect(
      Math.max(
        ...readFileSync(file, 'utf8')
          .split('\n')
          .map((line) => line.length),
      ),
    ).toBeLessThan(800_000)
  })

  test('a content that is not its hash is refused when it is read from a store', () => {
    const row = { type: 'blob', hash: 'f'.repeat(64), bytes: new Uint8Array([1]) } as const
    expect(() => new RowDigest().add(row)).toThrow('has the hash')
  })
})

describe('the commands', { timeout: 120_000 }, () => {
  test('backup while a server runs, restore, store copy; counts agree and keys are not in the file', async () => {
    const cwd = tempFolder()
    const { url } = await startDev([exampleAgents], { cwd })
    const body = JSON.stringify({ agent: 'support', message: 'Please refund order O-7' })
    const headers = { 'content-type': 'application/json' }
    const created = await fetch(`${url}/threads`, { method: 'POST', headers, body })
    const { id } = (await created.json()) as { id: string }
    await fetch(`${url}/threads/${id}/result`)
    const written = await skein(['backup', 'all.jsonl.gz', '--json'], { cwd })
    expect(written.code).toBe(0)
    const { counts } = JSON.parse(written.stdout) as { counts: Record<string, number> }
    expect(counts['thread']).toBeGreaterThanOrEqual(1)
    expect(counts['audit']).toBeGreaterThan(0)
    expect(statSync(join(cwd, 'all.jsonl.gz')).mode & 0o777).toBe(0o600)
    const again = await skein(['backup', 'all.jsonl.gz'], { cwd })
    expect(again.stderr).toContain('exists already')

    const to = 'sqlite:restored/skein.db'
    const restored = await skein(['restore', 'all.jsonl.gz', '--store', to, '--json'], { cwd })
    expect(restored.stderr).toBe('')
    expect(JSON.parse(restored.stdout)).toMatchObject({ counts })
    const refused = await skein(['restore', 'all.jsonl.gz', '--store', to], { cwd })
    expect(refused.code).toBe(1)
    expect(refused.stderr).toContain('exists already')
    expect((await skein(['store', 'verify', 'restored'], { cwd })).code).toBe(0)

    const copied = await skein(['store', 'copy', to, 'sqlite:copy/skein.db'], { cwd })
    expect(copied.stdout).toMatch(/\d+ threads, \d+ events, .*; all verified\.\n$/)
    const database = new DatabaseSync(join(cwd, 'copy', 'skein.db'))
    database.exec("UPDATE events SET json = replace(json, 'O-7', 'O-8')")
    database.close()
    const damaged = await skein(['store', 'copy', 'sqlite:copy/skein.db', 'sqlite:c.db'], { cwd })
    expect(damaged.code).toBe(1)
    expect(damaged.stderr).toMatch(/Event \d+ of thread .* is damaged/)
    expect(existsSync(join(cwd, 'c.db'))).toBe(false)
  })

  test('an address that names no store is refused, without its password', async () => {
    const args = ['store', 'copy', 'mysql://root:canary@db/x', 'sqlite:x.db']
    const { code, stderr } = await skein(args, { cwd: tempFolder() })
    expect(code).toBe(2)
    expect(stderr).toContain('sqlite:<file> or postgres://')
    expect(stderr).not.toContain('canary')
  })
})
