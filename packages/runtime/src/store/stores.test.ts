import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { manualClock } from '@skein/base'
import { afterAll } from 'vitest'
import { suiteFunctions } from '../../../../conformance/support/suite-functions.ts'
import { describeStore } from '../testing/store-contract.ts'
import { memoryStore } from './memory-store.ts'
import { sqliteStore, type SqliteStore } from './sqlite/sqlite-store.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-stores-'))
let count = 0

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const clock = manualClock(5_000_000)
const pass = (ms: number): void => clock.advance(ms)

describeStore(suiteFunctions(), { name: 'in memory', open: () => memoryStore({ clock }), pass })
describeStore(suiteFunctions(), {
  name: 'SQLite in memory',
  open: () => sqliteStore({ path: ':memory:', clock }),
  pass,
})
describeStore(suiteFunctions(), {
  name: 'SQLite in a file',
  open: () => sqliteStore({ path: join(folder, `${count++}.db`), clock }),
  pass,
  async reopen(store) {
    const { path } = store as SqliteStore
    await store.close()
    return sqliteStore({ path })
  },
})
