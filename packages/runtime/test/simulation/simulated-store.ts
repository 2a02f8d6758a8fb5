import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '@skein/base'
import { memoryStore, sqliteStore, type Store } from '@skein/runtime'

export interface SimulatedStore {
  readonly store: Store
  /** Opens the store once more, as another process does. Without it, all runtimes share `store`. */
  another?(): Promise<Store>
  /** Resolves when a store that answers in real time has answered everything. Nothing else happens before. */
  readonly settled?: () => Promise<void>
  /** Everything on disk; of stores in memory, nothing. */
  bytes(): readonly Buffer[] | Promise<readonly Buffer[]>
  remove(): Promise<void>
}

/** Opens a store whose clock is that of the world, so that leases end in virtual time. */
export function openSimulatedStore(
  kind: 'memory' | 'sqlite' | 'file',
  clock: Clock,
): SimulatedStore {
  if (kind !== 'file') {
    const store = withSnapshots(
      kind === 'memory' ? memoryStore({ clock }) : sqliteStore({ path: ':memory:', clock }),
    )
    return { store, bytes: () => [], remove: () => store.close() }
  }
  const folder = mkdtempSync(join(tmpdir(), 'skein-simulation-'))
  const store = withSnapshots(sqliteStore({ path: join(folder, 'skein.db'), clock }))
  return {
    store,
    bytes: () => readdirSync(folder).map((name) => readFileSync(join(folder, name))),
    async remove() {
      await store.close()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Lets the runtime take a snapshot of a log again and again, also while it is short. */
export function withSnapshots<S extends Store>(store: S): S {
  Object.defineProperty(store, 'snapshots', { value: { ...store.snapshots!, every: 3 } })
  return store
}
