import type { Lease, ThreadHead, ThreadLifecycle } from './head.ts'
import { searchText } from './select-threads.ts'

/** What a column of a head holds. A database without booleans stores them as 0 and 1. */
export type HeadValue = string | number | boolean | null

/** For each column, the function that computes its value. */
export type HeadColumns = Readonly<Record<string, (head: ThreadHead) => HeadValue>>

/**
 * The columns in which stores with SQL keep the head of a thread, in groups by how often they change, because a
 * database rewrites the indexes of every column that a statement sets.
 */
export const headColumns: Readonly<Record<'fixed' | 'labels' | 'progress', HeadColumns>> = {
  /** Columns that never change. */
  fixed: {
    id: (head) => head.id,
    tenant: (head) => head.tenant,
    parent_id: (head) => head.parentId,
    root_id: (head) => head.rootId,
    created_at: (head) => head.createdAt,
  },
  /** Columns that seldom change and are in several indexes. */
  labels: {
    client_id: (head) => head.clientId,
    owner: (head) => head.owner,
    agent: (head) => head.agent,
    title: (head) => head.title,
    tags: (head) => JSON.stringify(head.tags),
    tools: (head) => JSON.stringify(head.tools),
    first_words: (head) => head.firstWords,
    forked_from: (head) => head.forkedFrom?.threadId ?? null,
    forked_at: (head) => head.forkedFrom?.messageId ?? null,
    search: searchText,
  },
  /** Columns that change with nearly every commit. */
  progress: {
    lifecycle: (head) => head.lifecycle,
    waiting: (head) => head.waiting,
    granted_until: (head) => head.grantedUntil,
    tokens: (head) => head.tokens,
    output_tokens: (head) => head.outputTokens,
    cached_tokens: (head) => head.cachedTokens,
    cost_usd: (head) => head.costUsd,
    unpriced: (head) => head.unpriced,
    updated_at: (head) => head.updatedAt,
    seq: (head) => head.seq,
    change: (head) => head.change,
    log_id: (head) => head.logId,
    epoch: (head) => head.epoch,
    wake_at: (head) => head.wakeAt,
    attempts: (head) => head.attempts,
    lease_owner: (head) => head.lease?.owner ?? null,
    lease_until: (head) => head.lease?.until ?? null,
    deaths: (head) => head.lease?.deaths ?? 0,
    survived: (head) => head.lease?.survived ?? 0,
    on_trial: (head) => head.lease?.isQuarantined ?? false,
    lease_address: (head) => head.lease?.address ?? null,
  },
}

/** A row as a database returns it, by the names of `headColumns`. */
type HeadRow = Readonly<Record<string, unknown>>

/** Converts a row to a head. `namesOf` reads a list of names, which databases keep in different forms. */
export function headOfRow<Row extends HeadRow>(
  row: Row,
  namesOf: (row: Row, column: 'tags' | 'tools') => readonly string[],
): ThreadHead {
  return {
    id: row['id'] as string,
    tenant: row['tenant'] as string,
    owner: row['owner'] as string | null,
    agent: row['agent'] as string,
    parentId: row['parent_id'] as string | null,
    rootId: row['root_id'] as string,
    title: row['title'] as string | null,
    firstWords: row['first_words'] as string | null,
    forkedFrom: forkOfRow(row),
    tags: namesOf(row, 'tags'),
    tools: namesOf(row, 'tools'),
    grantedUntil: row['granted_until'] as number | null,
    clientId: row['client_id'] as string | null,
    lifecycle: row['lifecycle'] as ThreadLifecycle,
    waiting: row['waiting'] as number,
    tokens: row['tokens'] as number,
    outputTokens: row['output_tokens'] as number,
    cachedTokens: row['cached_tokens'] as number,
    costUsd: row['cost_usd'] as number,
    unpriced: row['unpriced'] as number,
    createdAt: row['created_at'] as number,
    updatedAt: row['updated_at'] as number,
    seq: row['seq'] as number,
    change: row['change'] as number,
    logId: row['log_id'] as number,
    epoch: row['epoch'] as number,
    wakeAt: row['wake_at'] as number | null,
    attempts: row['attempts'] as number,
    lease: leaseOfRow(row),
  }
}

function forkOfRow(row: HeadRow): ThreadHead['forkedFrom'] {
  const threadId = row['forked_from'] as string | null
  return threadId === null ? null : { threadId, messageId: row['forked_at'] as string | null }
}

function leaseOfRow(row: HeadRow): Lease | null {
  const owner = row['lease_owner'] as string | null
  if (owner === null) return null
  const address = row['lease_address'] as string | null
  const lease: Lease = {
    owner,
    until: row['lease_until'] as number,
    deaths: row['deaths'] as number,
    survived: row['survived'] as number,
    isQuarantined: row['on_trial'] === 1 || row['on_trial'] === true,
  }
  return address === null ? lease : { ...lease, address }
}
