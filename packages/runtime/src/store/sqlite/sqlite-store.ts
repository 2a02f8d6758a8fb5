import { rmSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import { type Clock, type JsonObject, systemClock } from '@skein/base'
import type { RuntimeEvent, StoredEvent } from '../../contract/event.ts'
import { doPart, nextTurn } from '../next-turn.ts'
import { planCommit, planErase } from '../plan-commit.ts'
import { storedText } from '../stored-text.ts'
import { createPrivately, openDatabase } from './sqlite-file.ts'
import { GroupCommit } from './group-commit.ts'
import { lockOwner, type OwnerLock } from './sqlite-owner-lock.ts'
import { sqliteFailure } from './sqlite-failure.ts'
import { damaged } from './sqlite-rows.ts'
import { SqliteTables } from './sqlite-tables.ts'
import { verifyDatabase } from './sqlite-verify.ts'
import type { Claim, ClaimOptions, HeldThread, Snapshots, Store } from '../store.ts'
import type { Commit, CommitResult } from '../commit.ts'
import { StoreError } from '../store-error.ts'
import type { UserOf, UserValue } from '../user-value.ts'
import { copyDatabase, scrub } from './sqlite-copy.ts'

/** Options of `sqliteStore`. */
export interface SqliteStoreOptions {
  /** The path of the file, which is created with its folder if missing. `:memory:` keeps nothing after `close`. */
  readonly path: string
  /** The largest size of the file; a commit beyond it is refused (`STORE_FULL`). Default: no limit. */
  readonly maxBytes?: number
  /** How long to wait if another program is using the file. Default 5 s. */
  readonly busyTimeoutMs?: number
  /** The clock that decides when leases expire, and that gives the start time in the record of the owner. */
  readonly clock?: Clock
}

/** Threads in one SQLite file, owned by one process. */
export interface SqliteStore extends Store {
  readonly path: string
  /** Copies the store into a new file while it is in use. To restore, open the copy. */
  backup(toPath: string): Promise<void>
  /** Checks the whole file and lists its problems; empty if there are none. */
  check(): Promise<readonly string[]>
}

/** Opens a store in a file. A commit that has resolved survives a crash of the process and of the machine. */
export function sqliteStore(options: SqliteStoreOptions): SqliteStore {
  const { path, clock = systemClock } = options
  if (path === ':memory:') return new FileStore(path, openDatabase(options), clock)
  const lock = lockOwner(path, clock.now())
  try {
    createPrivately(path)
    const database = openDatabase(options)
    try {
      const store = new FileStore(path, database, clock, lock)
      store.scrub()
      return store
    } catch (error) {
      database.close()
      throw error
    }
  } catch (error) {
    lock.release()
    throw sqliteFailure(error, path)
  }
}

/** The name of a setting which says that erased bytes may still be in the file. */
const SCRUB = ' scrub'

class FileStore implements SqliteStore {
  readonly path: string
  readonly isTemporary: boolean
  readonly #database: DatabaseSync
  readonly #clock: Clock
  readonly #lock: OwnerLock | undefined
  readonly #tables: SqliteTables
  readonly #writes: GroupCommit
  #wholeFile: Promise<unknown> = Promise.resolve()
  #nextScrub: Promise<void> | undefined
  #isClosed = false

  constructor(path: string, database: DatabaseSync, clock: Clock, lock?: OwnerLock) {
    this.path = path
    this.isTemporary = path === ':memory:'
    this.#database = database
    this.#clock = clock
    this.#lock = lock
    this.#tables = new SqliteTables(database)
    // Only one process can own the file, and it has just started: the processes whose leases are stored are dead.
    this.#tables.endLeases()
    this.#writes = new GroupCommit(database, () => this.#tables.forget())
  }

  commit(commit: Commit): Promise<CommitResult> {
    const work = (): CommitResult => {
      const plan = planCommit(commit, this.#tables)
      this.#tables.write(plan)
      return plan.result
    }
    return this.#write(work, { isLazy: commit.isLazy === true })
  }

  claim(threadId: string, options: ClaimOptions): Promise<Claim | HeldThread | undefined> {
    // A claim is not synced to disk by itself: the first commit of the process that claimed the thread
    // syncs it too.
    return this.#write(
      () => {
        const head = this.#tables.claim(threadId, options, this.#clock.now())
        return head && !('heldBy' in head) ? { head, epoch: head.epoch } : head
      },
      { isLazy: true },
    )
  }

  renew(
    threadIds: readonly string[],
    { owner, leaseMs }: ClaimOptions,
  ): Promise<readonly string[]> {
    const work = () => this.#tables.renew(threadIds, owner, this.#clock.now() + leaseMs)
    return this.#write(work, { isLazy: true })
  }

  release(owner: string, threadIds?: readonly string[]): Promise<void> {
    return this.#write(() => this.#tables.release(owner, threadIds), { isLazy: true })
  }

  readonly head: Store['head'] = (threadId) => this.#read((tables) => tables.head(threadId))

  readonly headByClientId: Store['headByClientId'] = (tenant, clientId, owner) =>
    this.#read((tables) => tables.headByClientId(tenant, clientId, owner))

  readonly list: Store['list'] = (query) => this.#readInParts((tables) => tables.list(query))

  readonly waiting: Store['waiting'] = (query) =>
    doPart(() => this.#read((tables) => tables.waiting(query)))

  readonly tenants: Store['tenants'] = () => this.#read((tables) => tables.tenants())

  events(
    threadId: string,
    { after = 0, limit = Infinity }: { readonly after?: number; readonly limit?: number } = {},
  ): Promise<readonly StoredEvent[]> {
    return this.#read((tables) => tables.events(threadId, after, limit))
  }

  readonly due: Store['due'] = (now, limit) => this.#read((tables) => tables.due(now, limit))

  readonly nextWake: Store['nextWake'] = (after = -Infinity) =>
    this.#read((tables) => tables.nextWake(after))

  readonly treeUsage: Store['treeUsage'] = (rootId) =>
    this.#read((tables) => tables.treeUsage(rootId))

  readonly subtreeUsage: Store['subtreeUsage'] = (threadIds) =>
    this.#readInParts((tables) => tables.subtreeUsage(threadIds))

  readonly totals: Store['totals'] = () => this.#read((tables) => tables.totals())

  readonly counters: Store['counters'] = (prefix) => this.#read((tables) => tables.counters(prefix))

  readonly blob: Store['blob'] = (hash) => this.#read((tables) => tables.blob(hash))

  readonly audit: Store['audit'] = (tree, options) =>
    doPart(() => this.#read((tables) => tables.audit(tree, options)))

  async erase(threadId: string, skeleton: readonly RuntimeEvent[]): Promise<void> {
    await this.#write(() => {
      const { head, events, blobNames } = planErase(threadId, skeleton, this.#tables)
      this.#tables.replaceLog(head, events, blobNames)
      this.#tables.setSetting(SCRUB, '{}')
    })
    await this.#scrub()
  }

  remove(threadId: string): Promise<void> {
    return this.#write(() => this.#tables.remove(threadId))
  }

  userValues(of: UserOf, prefix = ''): Promise<readonly UserValue[]> {
    return this.#read((tables) => tables.userValues(of, prefix))
  }

  async eraseUserValues(of: UserOf): Promise<number> {
    const count = await this.#write(() => {
      this.#tables.setSetting(SCRUB, '{}')
      return this.#tables.eraseUserValues(of)
    })
    await this.#scrub()
    return count
  }

  async setting(name: string): Promise<JsonObject | undefined> {
    const text = await this.#read((tables) => tables.setting(name))
    if (text === undefined) return undefined
    try {
      return JSON.parse(text) as JsonObject
    } catch {
      throw damaged(`The setting ${name}`)
    }
  }

  setSetting(name: string, value: JsonObject): Promise<void> {
    return this.#write(() =>
      this.#tables.setSetting(name, storedText(value, `The setting ${name}`)),
    )
  }

  readonly snapshots: Snapshots = {
    read: (_, logId) => this.#read((tables) => tables.snapshot(logId)),
    save: (threadId, logId, parts) =>
      this.#write(() => this.#tables.saveSnapshot(threadId, logId, parts), { isLazy: true }),
  }

  async backup(toPath: string): Promise<void> {
    this.#mustBeOpen()
    if (!createPrivately(toPath))
      throw new StoreError(`The backup ${toPath} exists already.`, {
        code: 'STATE_CONFLICT',
        hint: 'Name a file that does not exist; a backup is never overwritten.',
      })
    try {
      await this.#inTurn(() => copyDatabase(this.#database, this.path, toPath))
    } catch (error) {
      rmSync(toPath, { force: true })
      throw sqliteFailure(error, this.path)
    }
  }

  async check(): Promise<readonly string[]> {
    this.#mustBeOpen()
    return verifyDatabase(this.#database).problems
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#writes.flush()
    this.#isClosed = true
    await this.#wholeFile
    this.#database.close()
    this.#lock?.release()
  }

  async #write<T>(work: () => T, options?: { readonly isLazy: boolean }): Promise<T> {
    this.#mustBeOpen()
    try {
      return await this.#writes.write(work, options)
    } catch (error) {
      throw sqliteFailure(error, this.path)
    }
  }

  async #read<T>(work: (tables: SqliteTables) => T): Promise<T> {
    this.#mustBeOpen()
    try {
      return work(this.#tables)
    } catch (error) {
      throw sqliteFailure(error, this.path)
    }
  }

  /** Reads in parts, between which other work of the process has its turn. */
  async #readInParts<T>(
    begin: (tables: SqliteTables) => Generator<void, T, undefined>,
  ): Promise<T> {
    const parts = await this.#read(begin)
    for (;;) {
      const step = await doPart(() => this.#read(() => parts.next()))
      if (step.done) return step.value
      await nextTurn()
    }
  }

  /** Overwrites the bytes of erased threads, also of those that a process erased before it died. */
  scrub(): void {
    if (this.#tables.setting(SCRUB) === undefined) return
    if (this.path !== ':memory:') scrub(this.#database, this.path)
    this.#tables.removeSetting(SCRUB)
  }

  /** Rewrites the file once for all erasures that were requested together. */
  #scrub(): Promise<void> {
    this.#nextScrub ??= this.#inTurn(() => {
      this.#nextScrub = undefined
      this.#mustBeOpen()
      this.scrub()
    })
    return this.#nextScrub
  }

  /** Runs copies and scrubs (which overwrite erased data) one after the other: each uses the whole file. */
  #inTurn<T>(work: () => T | Promise<T>): Promise<T> {
    const result = this.#wholeFile.then(work)
    this.#wholeFile = result.catch(() => {})
    return result
  }

  #mustBeOpen(): void {
    if (this.#isClosed)
      throw new StoreError(`The store ${this.path} is closed.`, { code: 'STORE_CLOSED' })
  }
}
