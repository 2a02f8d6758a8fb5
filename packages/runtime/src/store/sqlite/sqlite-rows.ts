import type { SQLInputValue, SQLOutputValue } from 'node:sqlite'
import type { RuntimeEvent, StoredEvent } from '../../contract/event.ts'
import { unpackText, rowSum } from './packed-text.ts'
import {
  type Lease,
  StoreError,
  type ThreadHead,
  type ThreadLifecycle,
  type UserValue,
} from '../store.ts'
import { searchText } from '../thread-head.ts'

/** A row as SQLite returns it. */
export type Row = Record<string, SQLOutputValue>

/** Converts a row of the table `threads` to a head, the summary of a thread. */
export function headFrom(row: Row): ThreadHead {
  return {
    id: row['id'] as string,
    tenant: row['tenant'] as string,
    owner: row['owner'] as string | null,
    agent: row['agent'] as string,
    parentId: row['parent_id'] as string | null,
    rootId: row['root_id'] as string,
    title: row['title'] as string | null,
    firstWords: row['first_words'] as string | null,
    forkedFrom: forkFrom(row),
    tags: namesFrom(row, 'tags'),
    tools: namesFrom(row, 'tools'),
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
    lease: leaseFrom(row),
  }
}

function forkFrom(row: Row): ThreadHead['forkedFrom'] {
  const threadId = row['forked_from'] as string | null
  return threadId === null ? null : { threadId, messageId: row['forked_at'] as string | null }
}

function leaseFrom(row: Row): Lease | null {
  const owner = row['lease_owner'] as string | null
  if (owner === null) return null
  const address = row['lease_address'] as string | null
  const lease: Lease = {
    owner,
    until: row['lease_until'] as number,
    deaths: row['deaths'] as number,
    survived: row['survived'] as number,
    isOnTrial: row['on_trial'] === 1,
  }
  return address === null ? lease : { ...lease, address }
}

function namesFrom(row: Row, column: 'tags' | 'tools'): readonly string[] {
  try {
    const names: unknown = JSON.parse(row[column] as string)
    if (Array.isArray(names)) return names as string[] // only the store writes this column
  } catch {
    // The error is thrown below, without the parser's message, because that message quotes stored content.
  }
  throw damaged(`The head of thread ${String(row['id'])}`)
}

/** Converts a row of the table `events`; throws `STORE_CORRUPT` if its checksum is wrong. */
export function eventFrom(threadId: string, row: Row): StoredEvent {
  const seq = row['seq'] as number
  const json = textFrom(threadId, seq, row['json'], row['sum'])
  if (json === undefined) throw damaged(`Event ${seq} of thread ${threadId}`)
  return { seq, event: JSON.parse(json) as RuntimeEvent }
}

/** Returns the text of a row, packed or not; undefined if its checksum is wrong. */
export function textFrom(
  key: string,
  number: number,
  content: unknown,
  sum: unknown,
): string | undefined {
  // Damage to the header of a row may also change the type of a column.
  if (typeof content !== 'string' && !(content instanceof Uint8Array)) return undefined
  return rowSum(key, number, content) === sum ? unpackText(content) : undefined
}

/** Converts a row of the table `user_values`; throws `STORE_CORRUPT` if its checksum is wrong. */
export function userValueFrom(row: Row): UserValue {
  const [tenant, user, key] = [row['tenant'], row['user'], row['key']].map(String)
  const { json, version } = row
  const sum = rowSum(userValueName(tenant!, user!, key!), Number(version), String(json))
  if (typeof json !== 'string' || sum !== row['sum'])
    throw damaged(`The value "${key}" of the user ${user} of ${tenant}`)
  const value = JSON.parse(json) as UserValue['value']
  return { key: key!, value, version: Number(version), updatedAt: String(row['updated_at']) }
}

/** Names a row of `user_values`, for its checksum. */
export function userValueName(tenant: string, user: string, key: string): string {
  return JSON.stringify([tenant, user, key])
}

/** Creates the error for a row whose content differs from what was written. */
export function damaged(what: string, why = 'its checksum is wrong'): StoreError {
  return new StoreError(`${what} is damaged: ${why}.`, {
    code: 'STORE_CORRUPT',
    hint: 'Run `skein store verify` to see what else is damaged, and open a backup.',
  })
}

/** Inserts a new thread, with the values of `newRow`. */
export const insertHead = `INSERT INTO threads (
  id, tenant, parent_id, root_id, created_at,
  client_id, owner, agent, title, tags, tools, first_words, forked_from, forked_at, search,
  lifecycle, waiting, granted_until, tokens, output_tokens, cached_tokens, cost_usd, unpriced, updated_at, seq, change, log_id, epoch,
  wake_at, attempts, lease_owner, lease_until, deaths, survived, on_trial, lease_address
) VALUES (?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?, ?, ?)`

/** The columns that change with nearly every commit, in the order of `progress`. */
const PROGRESS =
  'lifecycle waiting granted_until tokens output_tokens cached_tokens cost_usd unpriced updated_at seq change log_id epoch wake_at attempts lease_owner lease_until deaths survived on_trial lease_address'.split(
    ' ',
  )

/**
 * Returns the statement that updates the columns that differ; undefined if none does. Columns that stay the
 * same are left out, because SQLite rewrites the indexes of every column that is set, even to the same value.
 */
export function headUpdate(
  head: ThreadHead,
  before: ThreadHead,
): { readonly sql: string; readonly values: SQLInputValue[] } | undefined {
  const old = progress(before)
  const now = progress(head)
  const places = [...PROGRESS.keys()].filter((place) => now[place] !== old[place])
  if (places.length === 0) return undefined
  return {
    sql: `UPDATE threads SET ${places.map((place) => `${PROGRESS[place]} = ?`).join(', ')} WHERE id = ?`,
    values: [...places.map((place) => now[place]!), head.id],
  }
}

/**
 * Updates the columns that seldom change. They have a statement of their own, because updating their
 * indexes and the search text is slow.
 */
export const updateLabels =
  'UPDATE threads SET client_id = ?, owner = ?, agent = ?, title = ?, tags = ?, tools = ?, first_words = ?, forked_from = ?, forked_at = ?, search = ? WHERE id = ?'

/** Returns the values for `insertHead`. */
export function newRow(head: ThreadHead): SQLInputValue[] {
  const { id, tenant, parentId, rootId, createdAt } = head
  return [id, tenant, parentId, rootId, createdAt, ...labels(head), ...progress(head)]
}

/** Returns the values of the columns `PROGRESS`. */
function progress(head: ThreadHead): SQLInputValue[] {
  const { lifecycle, waiting, grantedUntil, tokens, outputTokens, cachedTokens } = head
  const { costUsd, unpriced } = head
  const { updatedAt, seq, change, logId, epoch, wakeAt, attempts } = head
  const { owner, until, deaths, survived, isOnTrial, address = null } = head.lease ?? noLease
  const spent = [tokens, outputTokens, cachedTokens, costUsd, unpriced]
  const lease = [owner, until, deaths, survived, isOnTrial ? 1 : 0, address]
  const place = [updatedAt, seq, change, logId, epoch]
  return [lifecycle, waiting, grantedUntil, ...spent, ...place, wakeAt, attempts, ...lease]
}

const noLease = {
  owner: null,
  until: null,
  deaths: 0,
  survived: 0,
  isOnTrial: false,
  address: undefined,
}

/** Returns the values for `updateLabels`. */
export function labels(head: ThreadHead): SQLInputValue[] {
  const { clientId, owner, agent, title, tags, tools, firstWords, forkedFrom } = head
  const fork = [forkedFrom?.threadId ?? null, forkedFrom?.messageId ?? null]
  const names = [JSON.stringify(tags), JSON.stringify(tools)]
  return [clientId, owner, agent, title, ...names, firstWords, ...fork, searchText(head)]
}
