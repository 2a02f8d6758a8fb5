import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryStore, sqliteStore, type Store } from '@skein/runtime'

export interface SimulatedStore {
  readonly store: Store
  /** Everything on disk; of stores in memory, nothing. */
  bytes(): readonly Buffer[]
  remove(): Promise<void>
}

export function openSimulatedStore(kind: 'memory' | 'sqlite' | 'file'): SimulatedStore {
  if (kind !== 'file') {
    const store = kind === 'memory' ? memoryStore() : sqliteStore({ path: ':memory:' })
    return { store, bytes: () => [], remove: () => store.close() }
  }
  const folder = mkdtempSync(join(tmpdir(), 'skein-simulation-'))
  const store = sqliteStore({ path: join(folder, 'skein.db') })
  return {
    store,
    bytes: () => readdirSync(folder).map((name) => readFileSync(join(folder, name))),
    async remove() {
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
