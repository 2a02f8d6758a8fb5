import {
  type AuditLine,
  type Blob,
  type Commit,
  type CommitResult,
  StoreError,
  type ThreadChange,
  type ThreadHead,
} from './store.ts'
import { changeHead, newHead } from './thread-head.ts'
import { isPlainObject } from '@skein/base'

/** What has to be known about a store to judge a commit. */
export interface StoreView {
  head(id: string): ThreadHead | undefined
  hasClientId(tenant: string, clientId: string): boolean
  hasAuditLine(requestId: string, seq: number): boolean
  /** Number of lines in the audit log of a root thread. */
  auditLength(tree: string): number
  isSpent(jti: string): boolean
}

/** A commit that was found good, as rows to be written. */
export interface CommitPlan {
  /** As they become and as they were; a new thread was not. */
  readonly heads: readonly { readonly head: ThreadHead; readonly before: ThreadHead | undefined }[]
  readonly events: readonly EventRow[]
  readonly blobs: readonly Blob[]
  readonly blobNames: readonly BlobName[]
  readonly audit: readonly (AuditLine & { readonly index: number })[]
  readonly spent: readonly { readonly jti: string; readonly exp: number }[]
  readonly result: CommitResult
}

export interface EventRow {
  readonly threadId: string
  readonly seq: number
  readonly type: string
  readonly at: string
  readonly json: string
}

/**
 * Judges a commit against what is stored, and says what to write. All stores share it, so they agree on
 * what is refused. Throws before anything was written.
 */
export function planCommit(commit: Commit, view: StoreView): CommitPlan {
  const before = checkThreads(commit.threads, view)
  checkSpent(commit, view)
  const heads = new Map(before)
  const events = commit.threads.flatMap((change) => {
    const head = heads.get(change.id)
    if (!head) throw notFound(change.id)
    heads.set(change.id, changeHead(head, change))
    return eventRows(change, head.seq)
  })
  const audit = numberAudit(commit, view)
  const isNew = new Set(commit.threads.flatMap(({ id, create }) => (create ? [id] : [])))
  const first = audit[0]
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
    result: {
      seqs: new Map([...heads].map(([id, { seq }]) => [id, seq])),
      ...(first && { auditFrom: first.index }),
    },
  }
}

/** The events of a log that is written anew, from number 1. */
export function eventRows(change: Pick<ThreadChange, 'id' | 'append'>, after: number): EventRow[] {
  return (change.append ?? []).map((event, index) => ({
    threadId: change.id,
    seq: after + index + 1,
    type: event.type,
    at: event.at,
    json: jsonText(event, `The event ${event.type} of thread ${change.id}`),
  }))
}

export function notFound(id: string): StoreError {
  return new StoreError(`There is no thread ${id}.`, {
    code: 'THREAD_NOT_FOUND',
    hint: 'It may have been removed. Threads are listed with `list`.',
  })
}

/** The heads as they were, those of new threads made; every condition holds against these. */
function checkThreads(
  changes: readonly ThreadChange[],
  view: StoreView,
): ReadonlyMap<string, ThreadHead> {
  const heads = new Map<string, ThreadHead>()
  const clientIds = new Set<string>()
  for (const change of changes) {
    const { id, create } = change
    const known = heads.get(id) ?? view.head(id)
    if (create && known)
      throw new StoreError(`The thread ${id} exists already.`, { code: 'THREAD_EXISTS' })
    const head = create ? newHead(id, create) : known
    if (!head) throw notFound(id)
    checkConditions(change, head)
    if (create) checkClientId(head, clientIds, view)
    heads.set(id, head)
  }
  return heads
}

function checkConditions({ id, fence, expectSeq, mustBeLive }: ThreadChange, head: ThreadHead) {
  if (fence !== undefined && fence !== head.epoch)
    throw new StoreError(`Thread ${id} was claimed again: ${fence} is behind ${head.epoch}.`, {
      code: 'FENCED',
      hint: 'Another drain has taken over. Stop working on the thread.',
    })
  if (mustBeLive && (head.lifecycle === 'terminated' || head.lifecycle === 'erased'))
    throw new StoreError(`Thread ${id} is ${head.lifecycle}.`, { code: 'THREAD_TERMINATED' })
  if (expectSeq !== undefined && expectSeq !== head.seq)
    throw new StoreError(`Thread ${id} is at event ${head.seq}, not ${expectSeq}.`, {
      code: 'LOG_MOVED',
      hint: `Read its events after ${Math.min(expectSeq, head.seq)} and decide again.`,
    })
}

function checkClientId({ tenant, clientId }: ThreadHead, taken: Set<string>, view: StoreView) {
  if (clientId === null) return
  const key = JSON.stringify([tenant, clientId])
  if (taken.has(key) || view.hasClientId(tenant, clientId))
    throw new StoreError(`The client id ${clientId} is taken in tenant ${tenant}.`, {
      code: 'CLIENT_ID_TAKEN',
      hint: 'Use the thread that has it (`headByClientId`), or another id.',
    })
  taken.add(key)
}

function checkSpent({ spent = [] }: Commit, view: StoreView): void {
  const seen = new Set<string>()
  for (const { jti } of spent) {
    if (seen.has(jti) || view.isSpent(jti))
      throw new StoreError(`The approval token ${jti} is spent.`, {
        code: 'TOKEN_SPENT',
        hint: 'A token approves once. Ask for a new decision.',
      })
    seen.add(jti)
  }
}

function numberAudit({ audit = [] }: Commit, view: StoreView): CommitPlan['audit'] {
  const lengths = new Map<string, number>()
  const seen = new Set<string>()
  return audit.map((line) => {
    const key = JSON.stringify([line.requestId, line.seq])
    if (seen.has(key) || view.hasAuditLine(line.requestId, line.seq))
      throw new StoreError(`Request ${line.requestId} has a line ${line.seq} already.`, {
        code: 'STATE_CONFLICT',
        hint: 'Something else has gone on with the request. Read its audit log again.',
      })
    seen.add(key)
    const index = lengths.get(line.tree) ?? view.auditLength(line.tree)
    lengths.set(line.tree, index + 1)
    return { ...line, index }
  })
}

/**
 * Hashes that the JSON of an event names: each whole string that is one, with or without `sha256:`.
 * Taking one too many keeps a blob for longer; missing one would lose a file.
 */
function namedBlobs(json: string): readonly string[] {
  return Array.from(json.matchAll(/"(?:sha256:)?([0-9a-f]{64})"/g), (match) => match[1] ?? '')
}

/** A thread and a blob that it needs. */
export interface BlobName {
  readonly hash: string
  readonly threadId: string
}

/**
 * Which threads need which blobs after a commit. A blob that no event names, such as evidence, belongs
 * to the first thread of the commit that brought it.
 */
export function blobNames(
  commit: Commit,
  events: readonly { readonly threadId: string; readonly json: string }[],
): readonly BlobName[] {
  const names = events.flatMap(({ threadId, json }) =>
    namedBlobs(json).map((hash) => ({ hash, threadId })),
  )
  const named = new Set(names.map(({ hash }) => hash))
  const first = commit.threads[0]
  if (!first) return names
  const others = (commit.blobs ?? []).filter(({ hash }) => !named.has(hash))
  return [...names, ...others.map(({ hash }) => ({ hash, threadId: first.id }))]
}

/** Deeper JSON would overflow the stack of whoever reads it. */
const MAX_DEPTH = 1000

/**
 * The JSON of a value, which must be nothing but JSON: what comes back from a store is then what went
 * in. Members that are undefined are left out, as `JSON.stringify` does; `what` names it in the error.
 */
export function jsonText(value: unknown, what: string): string {
  const problem = findProblem(value, [])
  if (problem)
    throw new StoreError(`${what} is not JSON: it has ${problem}.`, {
      code: 'NOT_JSON',
      hint: 'Convert it to plain objects, lists, text, finite numbers, true, false or null first.',
    })
  return JSON.stringify(value)
}

/** `above` holds the objects around the value. Its place is added to a problem on the way out. */
function findProblem(value: unknown, above: object[]): string | undefined {
  switch (typeof value) {
    case 'string':
    case 'boolean':
      return undefined
    case 'number':
      return Number.isFinite(value) ? undefined : `the number ${value}`
    case 'object':
      return value === null ? undefined : findBelow(value, above)
    default:
      return `a value of type ${typeof value}`
  }
}

function findBelow(value: object, above: object[]): string | undefined {
  if (above.includes(value)) return 'a cycle'
  if (above.length >= MAX_DEPTH) return `more than ${MAX_DEPTH} levels`
  const isList = Array.isArray(value)
  if (!isList && !isPlainObject(value)) return `a ${value.constructor?.name ?? 'special object'}`
  if ('toJSON' in value && typeof value.toJSON === 'function') return 'a method toJSON'
  above.push(value)
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined && !isList) continue
    const problem = findProblem(member, above)
    if (problem) return above.length > 20 ? problem : `${problem} in ${JSON.stringify(key)}`
  }
  above.pop()
  return undefined
}
