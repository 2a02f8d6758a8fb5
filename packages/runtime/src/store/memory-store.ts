import { type Clock, deepFreeze, type JsonObject, systemClock } from '@skein/base'
import type { RuntimeEvent, StoredEvent } from '../contract/event.ts'
import type { BlobName } from './blob-names.ts'
import { planCommit, planErase, type CommitPlan, type EventRow } from './plan-commit.ts'
import { storedText } from './stored-text.ts'
import type { AuditLine, Commit, CommitResult } from './commit.ts'
import {
  removalsOf,
  type Claim,
  type ClaimOptions,
  type HeldThread,
  type Snapshots,
  type Store,
  type StoreTotals,
} from './store.ts'
import { StoreError } from './store-error.ts'
import type { ThreadHead, ThreadLifecycle, TreeUsage } from './head.ts'
import type { ThreadQuery } from './thread-query.ts'
import type { UserOf, UserValue } from './user-value.ts'
import type { WaitingQuery, WaitingRow } from './waiting-query.ts'
import { below } from './descendants.ts'
import { claimedHead } from './claimed-head.ts'
import { dueThreads } from './due-threads.ts'
import { selectThreads } from './select-threads.ts'
import { selectWaiting, type WaitingChange } from './waiting-rows.ts'

/**
 * Creates a store in memory, which is lost when the process ends: for tests, experiments and temporary
 * threads.
 */
export function memoryStore({ clock = systemClock }: MemoryStoreOptions = {}): Store {
  return new MemoryStore(clock)
}

/** Options of `memoryStore`. */
export interface MemoryStoreOptions {
  /** The clock that decides when leases end. */
  readonly clock?: Clock
}

type NumberedLine = AuditLine & { readonly index: number }

// Every method works synchronously, so that nothing else can run between the checks and the writes of a method.
class MemoryStore implements Store {
  readonly isTemporary = true
  readonly #heads = new Map<string, ThreadHead>()
  readonly #events = new Map<string, StoredEvent[]>()
  readonly #clientIds = new Map<string, string>()
  readonly #blobs = new Map<string, Uint8Array>()
  /** The ids of the threads that need a blob, by the hash of the blob. */
  readonly #blobUsers = new Map<string, Set<string>>()
  readonly #audit = new Map<string, NumberedLine[]>()
  readonly #auditKeys = new Set<string>()
  readonly #spent = new Set<string>()
  readonly #counters = new Map<string, number>()
  /** The values of each user by key. */
  readonly #userValues = new Map<string, Map<string, UserValue>>()
  readonly #settings = new Map<string, string>()
  /** The open questions of each thread by their ids. A thread without questions has no entry. */
  readonly #waiting = new Map<string, Map<string, WaitingRow>>()
  readonly #snapshots = new Map<
    string,
    { readonly logId: number; readonly parts: ReadonlyMap<number, Uint8Array> }
  >()
  readonly #counts = new Map<ThreadLifecycle, number>()
  #tokens = 0
  #costUsd = 0
  #lastLogId = 0
  #lastChange = 0
  #lastVersion = 0
  readonly #clock: Clock
  #isClosed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async commit(commit: Commit): Promise<CommitResult> {
    this.#mustBeOpen()
    const plan = planCommit(commit, {
      head: (id) => this.#heads.get(id),
      hasClientId: (tenant, owner, clientId) => this.#clientIds.has(keyOf(tenant, owner, clientId)),
      newLogId: () => ++this.#lastLogId,
      newChange: () => ++this.#lastChange,
      hasAuditLine: (requestId, seq) => this.#auditKeys.has(keyOf(requestId, seq)),
      auditLength: (tree) => this.#audit.get(tree)?.length ?? 0,
      isSpent: (jti) => this.#spent.has(jti),
      counter: (name) => this.#counters.get(name) ?? 0,
      userVersion: (of, key) => this.#valuesOf(of)?.get(key)?.version,
      userValueCount: (of) => this.#valuesOf(of)?.size ?? 0,
      newVersion: () => ++this.#lastVersion,
    })
    this.#write(plan)
    return plan.result
  }

  async claim(threadId: string, options: ClaimOptions): Promise<Claim | HeldThread | undefined> {
    this.#mustBeOpen()
    const before = this.#heads.get(threadId)
    if (!before) return undefined
    const after = claimedHead(before, options, this.#clock.now())
    if ('heldBy' in after) return after
    return { head: this.#setHead(after), epoch: after.epoch }
  }

  async renew(
    threadIds: readonly string[],
    { owner, leaseMs }: ClaimOptions,
  ): Promise<readonly string[]> {
    this.#mustBeOpen()
    const until = this.#clock.now() + leaseMs
    return threadIds.filter((id) => {
      const head = this.#heads.get(id)
      if (head?.lease?.owner !== owner) return false
      this.#setHead({ ...head, lease: { ...head.lease, until } })
      return true
    })
  }

  async release(owner: string, threadIds: readonly string[] = [...this.#heads.keys()]) {
    this.#mustBeOpen()
    for (const id of threadIds) {
      const head = this.#heads.get(id)
      if (head?.lease?.owner === owner) this.#setHead({ ...head, lease: null })
    }
  }

  async head(threadId: string): Promise<ThreadHead | undefined> {
    this.#mustBeOpen()
    return this.#heads.get(threadId)
  }

  async headByClientId(
    tenant: string,
    clientId: string,
    owner?: string | null,
  ): Promise<ThreadHead | undefined> {
    this.#mustBeOpen()
    if (owner !== undefined)
      return this.#heads.get(this.#clientIds.get(keyOf(tenant, owner, clientId)) ?? '')
    const heads = [...this.#heads.values()].filter(
      (head) => head.tenant === tenant && head.clientId === clientId,
    )
    return selectThreads(heads, { sort: 'oldest', limit: 1 })[0]
  }

  async list(query: ThreadQuery): Promise<readonly ThreadHead[]> {
    this.#mustBeOpen()
    return selectThreads(this.#heads.values(), query)
  }

  async waiting(query: WaitingQuery): Promise<readonly WaitingRow[]> {
    this.#mustBeOpen()
    const rows = [...this.#waiting.values()].flatMap((own) => [...own.values()])
    return selectWaiting(rows, query)
  }

  async tenants(): Promise<readonly string[]> {
    this.#mustBeOpen()
    return [...new Set([...this.#heads.values()].map(({ tenant }) => tenant))].sort()
  }

  async events(
    threadId: string,
    { after = 0, limit = Infinity }: { readonly after?: number; readonly limit?: number } = {},
  ): Promise<readonly StoredEvent[]> {
    this.#mustBeOpen()
    const from = Math.max(after, 0)
    return (this.#events.get(threadId) ?? []).slice(from, from + limit)
  }

  async due(now: number, limit: number): Promise<readonly string[]> {
    this.#mustBeOpen()
    return dueThreads(this.#heads.values(), now, limit)
  }

  async nextWake(after = -Infinity): Promise<number | undefined> {
    this.#mustBeOpen()
    let earliest: number | undefined
    for (const { wakeAt } of this.#heads.values())
      if (wakeAt !== null && wakeAt > after && (earliest === undefined || wakeAt < earliest))
        earliest = wakeAt
    return earliest
  }

  async treeUsage(rootId: string): Promise<TreeUsage> {
    this.#mustBeOpen()
    return sumOf([...this.#heads.values()].filter((head) => head.rootId === rootId))
  }

  async subtreeUsage(threadIds: readonly string[]): Promise<ReadonlyMap<string, TreeUsage>> {
    this.#mustBeOpen()
    const all = [...this.#heads.values()]
    const heads = threadIds.flatMap((id) => this.#heads.get(id) ?? [])
    return new Map(heads.map((head) => [head.id, sumOf([head, ...below(all, head.id)])]))
  }

  async totals(): Promise<StoreTotals> {
    this.#mustBeOpen()
    return { threads: new Map(this.#counts), tokens: this.#tokens, costUsd: this.#costUsd }
  }

  async counters(prefix: string): Promise<ReadonlyMap<string, number>> {
    this.#mustBeOpen()
    return new Map([...this.#counters].filter(([name]) => name.startsWith(prefix)))
  }

  async blob(hash: string): Promise<Uint8Array | undefined> {
    this.#mustBeOpen()
    return this.#blobs.get(hash)?.slice()
  }

  async audit(
    tree: string,
    { from = 0, requestId, limit = Infinity }: Parameters<Store['audit']>[1] = {},
  ): Promise<readonly { index: number; line: string }[]> {
    this.#mustBeOpen()
    // Lines are numbered from 0 without gaps, so the index is also the place in the list.
    const lines = (this.#audit.get(tree) ?? []).slice(Math.max(from, 0))
    return (requestId ? lines.filter((row) => row.requestId === requestId) : lines)
      .slice(0, limit)
      .map(({ index, line }) => ({ index, line }))
  }

  async erase(threadId: string, skeleton: readonly RuntimeEvent[]): Promise<void> {
    this.#mustBeOpen()
    const { head, before, events, blobNames } = planErase(threadId, skeleton, {
      head: (id) => this.#heads.get(id),
      newLogId: () => ++this.#lastLogId,
      newChange: () => ++this.#lastChange,
    })
    this.#setHead(head)
    this.#countRemoval(before)
    this.#events.delete(threadId)
    this.#snapshots.delete(threadId)
    this.#waiting.delete(threadId)
    this.#append(events)
    this.#forgetBlobs(threadId, blobNames)
  }

  async remove(threadId: string): Promise<void> {
    this.#mustBeOpen()
    const head = this.#heads.get(threadId)
    if (!head) return
    this.#heads.delete(threadId)
    this.#events.delete(threadId)
    this.#snapshots.delete(threadId)
    this.#waiting.delete(threadId)
    this.#forgetHead(head)
    for (const { requestId, seq } of this.#audit.get(threadId) ?? [])
      this.#auditKeys.delete(keyOf(requestId, seq))
    this.#audit.delete(threadId)
    this.#forgetBlobs(threadId, [])
    this.#countRemoval(head)
  }

  async userValues(of: UserOf, prefix = ''): Promise<readonly UserValue[]> {
    this.#mustBeOpen()
    return [...(this.#valuesOf(of)?.values() ?? [])]
      .filter(({ key }) => key.startsWith(prefix))
      .sort((a, b) => (a.key < b.key ? -1 : 1))
  }

  async eraseUserValues(of: UserOf): Promise<number> {
    this.#mustBeOpen()
    const count = this.#valuesOf(of)?.size ?? 0
    this.#userValues.delete(keyOf(of.tenant, of.user))
    return count
  }

  async setting(name: string): Promise<JsonObject | undefined> {
    this.#mustBeOpen()
    const text = this.#settings.get(name)
    return text === undefined ? undefined : (JSON.parse(text) as JsonObject)
  }

  async setSetting(name: string, value: JsonObject): Promise<void> {
    this.#mustBeOpen()
    this.#settings.set(name, storedText(value, `The setting ${name}`))
  }

  readonly snapshots: Snapshots = {
    read: async (threadId, logId) => {
      this.#mustBeOpen()
      const { logId: known, parts } = this.#snapshots.get(threadId) ?? {}
      return known === logId && parts ? new Map(parts) : new Map()
    },
    save: async (threadId, logId, parts) => {
      this.#mustBeOpen()
      if (this.#heads.get(threadId)?.logId !== logId) return
      const snapshot = this.#snapshots.get(threadId)
      const earlierParts = snapshot?.logId === logId ? snapshot.parts : []
      this.#snapshots.set(threadId, { logId, parts: new Map([...earlierParts, ...parts]) })
    },
  }

  async close(): Promise<void> {
    this.#isClosed = true
  }

  #write(plan: CommitPlan): void {
    for (const { head } of plan.heads) {
      this.#setHead(head)
    }
    this.#append(plan.events)
    for (const change of plan.waiting) this.#ask(change)
    for (const { hash, bytes } of plan.blobs)
      if (!this.#blobs.has(hash)) this.#blobs.set(hash, bytes.slice())
    this.#nameBlobs(plan.blobNames)
    for (const line of plan.audit) {
      listIn(this.#audit, line.tree).push(line)
      this.#auditKeys.add(keyOf(line.requestId, line.seq))
    }
    for (const { jti } of plan.spent) this.#spent.add(jti)
    for (const [name, value] of plan.counters)
      if (value === null) this.#counters.delete(name)
      else this.#counters.set(name, value)
    for (const { tenant, user, key, json, version, updatedAt } of plan.userValues) {
      const name = keyOf(tenant, user)
      const values = this.#userValues.get(name) ?? new Map<string, UserValue>()
      this.#userValues.set(name, values)
      if (json === null) values.delete(key)
      else values.set(key, deepFreeze({ key, value: JSON.parse(json), version, updatedAt }))
    }
  }

  #countRemoval({ tenant }: ThreadHead): void {
    const name = removalsOf(tenant)
    this.#counters.set(name, (this.#counters.get(name) ?? 0) + 1)
  }

  #valuesOf({ tenant, user }: UserOf): Map<string, UserValue> | undefined {
    return this.#userValues.get(keyOf(tenant, user))
  }

  #setHead(head: ThreadHead): ThreadHead {
    const before = this.#heads.get(head.id)
    if (before) this.#forgetHead(before)
    const { tenant, owner, clientId } = head
    if (clientId !== null) this.#clientIds.set(keyOf(tenant, owner, clientId), head.id)
    this.#count(head, 1)
    const frozen = deepFreeze({ ...head, tags: [...head.tags] })
    this.#heads.set(head.id, frozen)
    return frozen
  }

  #forgetHead(head: ThreadHead): void {
    const { tenant, owner, clientId } = head
    if (clientId !== null) this.#clientIds.delete(keyOf(tenant, owner, clientId))
    this.#count(head, -1)
  }

  #count({ lifecycle, tokens, costUsd }: ThreadHead, by: 1 | -1): void {
    this.#counts.set(lifecycle, (this.#counts.get(lifecycle) ?? 0) + by)
    this.#tokens += by * tokens
    this.#costUsd += by * costUsd
  }

  #append(rows: readonly EventRow[]): void {
    for (const { threadId, seq, json } of rows) {
      const event = JSON.parse(json) as RuntimeEvent
      listIn(this.#events, threadId).push(deepFreeze({ seq, event }))
    }
  }

  #ask(change: WaitingChange): void {
    const { threadId, closesAll, closesRequests, closedIds, closedSubjects, opened, labels } =
      change
    const before = closesAll ? [] : [...(this.#waiting.get(threadId)?.values() ?? [])]
    const rows = before
      .filter(({ until }) => !closesRequests || until === null)
      .filter(
        (row) => !closedIds.includes(row.interruptId) && !closedSubjects.includes(row.subject),
      )
      .map((row) => (labels ? { ...row, ...labels } : row))
    const all = new Map([...rows, ...opened].map((row) => [row.interruptId, deepFreeze(row)]))
    if (all.size > 0) this.#waiting.set(threadId, all)
    else this.#waiting.delete(threadId)
  }

  #nameBlobs(names: readonly BlobName[]): void {
    for (const { hash, threadId } of names) {
      const users = this.#blobUsers.get(hash) ?? new Set()
      this.#blobUsers.set(hash, users.add(threadId))
    }
  }

  #forgetBlobs(threadId: string, stillNamed: readonly BlobName[]): void {
    const remaining = new Set(stillNamed.map(({ hash }) => hash))
    for (const [hash, users] of this.#blobUsers) {
      if (remaining.has(hash) || !users.delete(threadId) || users.size > 0) continue
      this.#blobUsers.delete(hash)
      this.#blobs.delete(hash)
    }
  }

  #mustBeOpen(): void {
    if (this.#isClosed) throw new StoreError('The store is closed.', { code: 'STORE_CLOSED' })
  }
}

function keyOf(...parts: readonly (string | number | null)[]): string {
  return JSON.stringify(parts)
}

function listIn<T>(lists: Map<string, T[]>, key: string): T[] {
  const list = lists.get(key) ?? []
  lists.set(key, list)
  return list
}

function sumOf(heads: readonly ThreadHead[]): TreeUsage {
  const sum = { tokens: 0, costUsd: 0, unpriced: 0, waiting: 0 }
  for (const head of heads) {
    sum.tokens += head.tokens
    sum.costUsd += head.costUsd
    sum.unpriced += head.unpriced
    sum.waiting += head.waiting
  }
  return sum
}
