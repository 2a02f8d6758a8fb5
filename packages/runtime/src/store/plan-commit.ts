import { blobNames, type BlobName } from './blob-names.ts'
import { MAX_USER_VALUES, type UserOf, type UserValueChange } from './user-value.ts'
import { StoreError } from './store-error.ts'
import type { AuditLine, Blob, Commit, CommitResult, ThreadChange } from './commit.ts'
import type { ThreadHead } from './head.ts'
import { storedText } from './stored-text.ts'
import { changeHead, erasedHead } from './change-head.ts'
import { newHead } from './new-head.ts'
import { isStorable } from './storable-text.ts'
import { waitingChange, type WaitingChange } from './waiting-rows.ts'
import type { RuntimeEvent } from '../contract/event.ts'

/** The current contents of a store, as far as `planCommit` needs them. */
export interface StoreView {
  head(id: string): ThreadHead | undefined
  hasClientId(tenant: string, owner: string | null, clientId: string): boolean
  /** Returns a number for a new log that no log in this store has ever had. */
  newLogId(): number
  /** Returns the next number of a change to any thread, for `ThreadHead.change`. */
  newChange(): number
  hasAuditLine(requestId: string, seq: number): boolean
  /** Number of lines in the audit log of a root thread. */
  auditLength(tree: string): number
  isSpent(jti: string): boolean
  /** Returns the value of a counter; 0 if there is none. */
  counter(name: string): number
  /** The version of a user's value; undefined if there is none. */
  userVersion(of: UserOf, key: string): number | undefined
  userValueCount(of: UserOf): number
  /** Returns a version number that no value of a user in this store has ever had. */
  newVersion(): number
}

/** The rows to be written for a commit whose conditions hold. */
export interface CommitPlan {
  /** The head of each thread before and after the commit; `before` is undefined for a new thread. */
  readonly heads: readonly { readonly head: ThreadHead; readonly before: ThreadHead | undefined }[]
  readonly events: readonly EventRow[]
  readonly blobs: readonly Blob[]
  readonly blobNames: readonly BlobName[]
  readonly audit: readonly (AuditLine & { readonly index: number })[]
  readonly spent: readonly { readonly jti: string; readonly exp: number }[]
  /** The counters that change, with their new values; `null` removes one. */
  readonly counters: ReadonlyMap<string, number | null>
  readonly userValues: readonly UserValueRow[]
  /** The questions that are closed and opened, in order. */
  readonly waiting: readonly WaitingChange[]
  readonly result: CommitResult
}

/** A value of a user as a row of the store. If `json` is null, the row is removed. */
export interface UserValueRow extends UserOf {
  readonly key: string
  readonly json: string | null
  readonly version: number
  readonly updatedAt: string
}

/** An event as a row of the log. */
export interface EventRow {
  readonly threadId: string
  readonly seq: number
  readonly json: string
}

/**
 * Checks the conditions of a commit against the current contents of a store and returns the rows to write.
 * All stores share this function, so they refuse the same commits. Throws before anything is written.
 */
export function planCommit(commit: Commit, view: StoreView): CommitPlan {
  checkTexts(commit)
  const before = checkThreads(commit.threads, view)
  const tokenIds = new Set<string>()
  for (const { jti } of commit.spent ?? []) {
    if (tokenIds.has(jti) || view.isSpent(jti))
      throw new StoreError(`The approval token ${jti} is spent.`, {
        code: 'TOKEN_SPENT',
        hint: 'A token approves once. Ask for a new decision.',
      })
    tokenIds.add(jti)
  }
  const counters = newCounters(commit, view)
  const heads = new Map(before)
  const number = commit.threads.length > 0 ? view.newChange() : 0
  const waiting: WaitingChange[] = []
  const events = commit.threads.flatMap((change) => {
    const head = heads.get(change.id)
    if (!head) throw notFound(change.id)
    const after = changeHead(head, change, number)
    heads.set(change.id, after)
    const questions = waitingChange(change.append ?? [], after, change.create ? undefined : head)
    if (questions) waiting.push(questions)
    return eventRows(change, head.seq)
  })
  const audit = numberAudit(commit, view)
  const userValues = userValueRows(commit.userValues ?? [], view)
  const isNew = new Set(commit.threads.flatMap(({ id, create }) => (create ? [id] : [])))
  return {
    heads: [...heads].map(([id, head]) => ({
      head,
      before: isNew.has(id) ? undefined : before.get(id),
    })),
    events,
    blobs: commit.blobs ?? [],
    blobNames: blobNames(commit, events),
    audit,
    spent: commit.spent ?? [],
    counters,
    userValues,
    waiting,
    result: {
      seqs: new Map([...heads].map(([id, { seq }]) => [id, seq])),
      auditFrom: audit[0]?.index,
    },
  }
}

/**
 * Returns the rows to write when a thread is erased and its log is replaced by the events of `skeleton`: the new head,
 * the events, and the blobs that the thread still needs. Throws `THREAD_NOT_FOUND`.
 */
export function planErase(
  threadId: string,
  skeleton: readonly RuntimeEvent[],
  view: Pick<StoreView, 'head' | 'newLogId' | 'newChange'>,
): { readonly head: ThreadHead; readonly before: ThreadHead } & Pick<
  CommitPlan,
  'events' | 'blobNames'
> {
  const before = view.head(threadId)
  if (!before) throw notFound(threadId)
  const events = eventRows({ id: threadId, append: skeleton }, 0)
  return {
    before,
    head: erasedHead(before, skeleton, { logId: view.newLogId(), change: view.newChange() }),
    events,
    blobNames: blobNames({ point: 'erase', threads: [] }, events),
  }
}

/** Converts the events of a change to rows, numbered from `after + 1`. */
function eventRows(change: Pick<ThreadChange, 'id' | 'append'>, after: number): EventRow[] {
  return (change.append ?? []).map((event, index) => ({
    threadId: change.id,
    seq: after + index + 1,
    json: storedText(event, `The event ${event.type} of thread ${change.id}`),
  }))
}

/** Creates the error for a thread that does not exist. */
function notFound(id: string): StoreError {
  return new StoreError(`There is no thread ${id}.`, {
    code: 'THREAD_NOT_FOUND',
    hint: 'It may have been removed. Threads are listed with `list`.',
  })
}

/** Returns the heads before the commit, also for new threads. Throws if a condition does not hold. */
function checkThreads(
  changes: readonly ThreadChange[],
  view: StoreView,
): ReadonlyMap<string, ThreadHead> {
  const heads = new Map<string, ThreadHead>()
  const clientIds = new Set<string>()
  for (const change of changes) {
    const { id, create } = change
    const before = heads.get(id) ?? view.head(id)
    if (create && before)
      throw new StoreError(`The thread ${id} exists already.`, { code: 'THREAD_EXISTS' })
    const head = create ? newHead(id, create, view.newLogId(), 0) : before
    if (!head) throw notFound(id)
    checkConditions(change, head)
    heads.set(id, head)
    const { tenant, clientId } = head
    const owner = change.head?.owner === undefined ? head.owner : change.head.owner
    if (clientId === null || (!create && owner === head.owner)) continue
    const key = JSON.stringify([tenant, owner, clientId])
    if (clientIds.has(key) || view.hasClientId(tenant, owner, clientId))
      throw new StoreError(`The owner has another thread with the client id ${clientId}.`, {
        code: 'CLIENT_ID_TAKEN',
        hint: 'Use the thread that has it (`headByClientId`), or another id.',
      })
    clientIds.add(key)
  }
  return heads
}

/** Throws `TEXT_INVALID` for ids and names that some database could not store (see `isStorable`). */
function checkTexts({ threads, audit = [], spent = [], userValues = [] }: Commit): void {
  const check = (text: string | null | undefined, what: string): void => {
    if (text === null || text === undefined || isStorable(text)) return
    throw new StoreError(`The ${what} ${JSON.stringify(text)} cannot be stored.`, {
      code: 'TEXT_INVALID',
      hint: 'It must be well-formed text without the character NUL.',
    })
  }
  for (const { id, create, head } of threads) {
    check(head?.owner, 'owner')
    check(head?.agent, 'agent name')
    if (!create) continue
    check(id, 'thread id')
    check(create.tenant, 'tenant')
    check(create.owner, 'owner')
    check(create.agent, 'agent name')
    check(create.clientId, 'client id')
  }
  for (const { tree, requestId, line } of audit) {
    check(tree, 'thread id')
    check(requestId, 'request id')
    check(line, 'audit line')
  }
  for (const { jti } of spent) check(jti, 'token id')
  for (const { tenant, user, key } of userValues) {
    check(tenant, 'tenant')
    check(user, 'user')
    check(key, 'key')
  }
}

function checkConditions({ id, fence, expectSeq, mustBeLive }: ThreadChange, head: ThreadHead) {
  if (fence !== undefined && fence !== head.epoch)
    throw new StoreError(`Thread ${id} was claimed again: ${fence} is behind ${head.epoch}.`, {
      code: 'FENCED',
      hint: 'Another drain works on the thread now. Stop working on it.',
    })
  if (mustBeLive && (head.lifecycle === 'terminated' || head.lifecycle === 'erased'))
    throw new StoreError(`Thread ${id} is ${head.lifecycle}.`, { code: 'THREAD_TERMINATED' })
  if (expectSeq !== undefined && expectSeq !== head.seq)
    throw new StoreError(`Thread ${id} is at event ${head.seq}, not ${expectSeq}.`, {
      code: 'LOG_MOVED',
      hint: `Read its events after ${Math.min(expectSeq, head.seq)} and decide again.`,
    })
}

/** The names of all counters that commits change begin with this text. */
export const COUNTERS = 'limit '

function newCounters({ counters = [] }: Commit, view: StoreView): CommitPlan['counters'] {
  const values = new Map<string, number | null>()
  for (const { name, add, below } of counters) {
    if (!name.startsWith(COUNTERS) || !isStorable(name) || (add !== null && !Number.isFinite(add)))
      throw new StoreError(`The counter ${JSON.stringify(name)} cannot be changed by ${add}.`, {
        code: 'TEXT_INVALID',
        hint: `Its name has to begin with "${COUNTERS}", and what is added has to be a finite number.`,
      })
    const value = values.get(name) ?? (values.has(name) ? 0 : view.counter(name))
    if (below !== undefined && value >= below)
      throw new StoreError(`The counter ${name} is ${value}, not below ${below}.`, {
        code: 'LIMIT_REACHED',
        hint: 'Wait until it is lowered, or until its period is over.',
      })
    values.set(name, add === null ? null : value + add)
  }
  return values
}

function numberAudit({ audit = [] }: Commit, view: StoreView): CommitPlan['audit'] {
  const lengths = new Map<string, number>()
  const names = new Set<string>()
  return audit.map((line) => {
    const key = JSON.stringify([line.requestId, line.seq])
    if (names.has(key) || view.hasAuditLine(line.requestId, line.seq))
      throw new StoreError(`Request ${line.requestId} has a line ${line.seq} already.`, {
        code: 'STATE_CONFLICT',
        hint: 'Another process continued this request. Read its audit log again.',
      })
    names.add(key)
    const index = lengths.get(line.tree) ?? view.auditLength(line.tree)
    lengths.set(line.tree, index + 1)
    return { ...line, index }
  })
}

/** Checks the conditions of changes to values of users. A change sees the earlier changes of the same commit. */
function userValueRows(
  changes: readonly UserValueChange[],
  view: StoreView,
): readonly UserValueRow[] {
  const versions = new Map<string, number | undefined>()
  const counts = new Map<string, number>()
  return changes.map(({ tenant, user, key, value, at: updatedAt, expectVersion }) => {
    const of = { tenant, user }
    const [name, owner] = [JSON.stringify([tenant, user, key]), JSON.stringify([tenant, user])]
    const before = versions.has(name) ? versions.get(name) : view.userVersion(of, key)
    if (expectVersion !== undefined && expectVersion !== (before ?? null))
      throw new StoreError(`The value "${key}" of a user was changed by another writer.`, {
        code: 'VALUE_MOVED',
        hint: 'Nothing was stored. Read the value again and decide again.',
      })
    const isRemoved = value === null
    const count = counts.get(owner) ?? view.userValueCount(of)
    const after = count + (isRemoved ? 0 : 1) - (before === undefined ? 0 : 1)
    if (after > count && after > MAX_USER_VALUES)
      throw new StoreError(`The user has ${count} values, and no more are kept.`, {
        code: 'VALUE_LIMIT',
        hint: 'Remove values that are no longer needed, or keep several things in one value.',
      })
    const version = view.newVersion()
    versions.set(name, isRemoved ? undefined : version)
    counts.set(owner, Math.max(after, 0))
    const json = isRemoved ? null : storedText(value, `The value "${key}" of a user`)
    return { ...of, key, json, version, updatedAt }
  })
}
