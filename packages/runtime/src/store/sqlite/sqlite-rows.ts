import type { SQLInputValue, SQLOutputValue } from 'node:sqlite'
import type { RuntimeEvent, StoredEvent } from '../../contract/event.ts'
import { unpackText, rowSum } from './packed-text.ts'
import { type HeadColumns, headColumns, headOfRow } from '../head-row.ts'
import { StoreError, type ThreadHead, type UserValue } from '../store.ts'

/** A row as SQLite returns it. */
export type Row = Record<string, SQLOutputValue>

/** Converts a row of the table `threads` to a head, the summary of a thread. */
export function headFrom(row: Row): ThreadHead {
  return headOfRow(row, namesFrom)
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

const { fixed, labels, progress } = headColumns
const all = { ...fixed, ...labels, ...progress }

/** Inserts a new thread, with the values of `newRow`. */
export const insertHead: string = `INSERT INTO threads (${Object.keys(all).join(', ')}) VALUES (${Object.keys(
  all,
)
  .map(() => '?')
  .join(', ')})`

/** Returns the values for `insertHead`. */
export function newRow(head: ThreadHead): SQLInputValue[] {
  return valuesOf(head, Object.values(all))
}

/**
 * Updates the columns that seldom change. They have a statement of their own, because updating their
 * indexes and the search text is slow.
 */
export const updateLabels: string = `UPDATE threads SET ${Object.keys(labels)
  .map((column) => `${column} = ?`)
  .join(', ')} WHERE id = ?`

/** Returns the values for `updateLabels`, without the id. */
export function labelValues(head: ThreadHead): SQLInputValue[] {
  return valuesOf(head, Object.values(labels))
}

const progressNames = Object.keys(progress)
const progressValues = Object.values(progress)

/**
 * Returns the statement that updates the columns that differ; undefined if none does. Columns that stay the
 * same are left out, because SQLite rewrites the indexes of every column that is set, even to the same value.
 */
export function headUpdate(
  head: ThreadHead,
  before: ThreadHead,
): { readonly sql: string; readonly values: SQLInputValue[] } | undefined {
  const old = valuesOf(before, progressValues)
  const now = valuesOf(head, progressValues)
  const places = [...progressNames.keys()].filter((place) => now[place] !== old[place])
  if (places.length === 0) return undefined
  return {
    sql: `UPDATE threads SET ${places.map((place) => `${progressNames[place]} = ?`).join(', ')} WHERE id = ?`,
    values: [...places.map((place) => now[place]!), head.id],
  }
}

/** SQLite has no booleans: they are 0 and 1. */
function valuesOf(head: ThreadHead, columns: readonly HeadColumns[string][]): SQLInputValue[] {
  return columns.map((valueOf) => {
    const value = valueOf(head)
    return typeof value === 'boolean' ? Number(value) : value
  })
}
