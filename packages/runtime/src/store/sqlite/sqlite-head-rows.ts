import type { SQLInputValue } from 'node:sqlite'
import { damaged, type Row } from './sqlite-rows.ts'
import { headColumns, headOfRow, type HeadColumns } from '../head-row.ts'
import type { ThreadHead } from '../head.ts'

/** Converts a row of the table `threads` to a head. */
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
