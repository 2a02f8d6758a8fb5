import { existsSync } from 'node:fs'
import { expect, test } from 'vitest'
import { sqliteStore, type StoreRow } from '@skein/runtime'
import { writeBackup } from '../src/backup/backup-file.ts'
import { restoreCommand } from '../src/commands/store.ts'
import { capturedOutput } from './output.ts'
import { newPath, rowsOf, storeOf } from './stores.ts'

/** Fields of threads that were added after the first version of the backup format. */
const LATER = ['firstWords', 'forkedFrom', 'tools', 'grantedUntil', 'outputTokens', 'cachedTokens']

test('a backup of threads without the fields of today is restored, with defaults', async () => {
  const thread = { title: 'A', values: [1], content: new Uint8Array([1]), costUsd: 0.5 }
  const given = { threads: [{ ...thread, wakeAt: null, claims: 0 }], userValues: [] }
  const rows = rowsOf(await storeOf({ ...given, spent: 1, counter: 1 }))
  const older = rows.map((row): StoreRow => {
    if (row.type !== 'thread') return row
    const head = Object.entries(row.head).filter(([name]) => !LATER.includes(name))
    return { type: 'thread', head: Object.fromEntries(head) as typeof row.head }
  })
  const file = newPath('jsonl')
  await writeBackup(file, older, { from: 'sqlite', at: '2026-01-02T03:04:05.678Z' })
  const path = newPath('db')
  const values = { store: `sqlite:${path}` }
  const { output, lines } = capturedOutput()
  expect(await restoreCommand.run({ values, operands: [file], output })).toBe(0)
  expect(lines[0]).toContain('1 threads, 1 events')
  expect(existsSync(path)).toBe(true)
  const store = sqliteStore({ path })
  const defaults = { firstWords: null, tools: [], grantedUntil: null, outputTokens: 0 }
  expect(await store.head('t0')).toMatchObject({ title: 'A', costUsd: 0.5, ...defaults })
  expect(await store.check()).toEqual([])
  await store.close()
})
