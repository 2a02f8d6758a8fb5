import { jsonText } from './json-text.ts'
import { blobNames, type BlobName } from './named-blobs.ts'
import {
  StoreError,
  type AuditLine,
  type Blob,
  type Commit,
  type CommitResult,
  type ThreadChange,
  type ThreadHead,
} from './store.ts'
import { changeHead, newHead } from './thread-head.ts'

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
