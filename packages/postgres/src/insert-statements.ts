import { type Statement, type Value } from './connections.ts'

/** The most rows of one INSERT, because a statement may have at most 65,535 values. */
const MAX_ROWS = 500

/** Only inserts of up to this many rows are prepared, because each number of rows is a statement of its own. */
const MAX_PREPARED_ROWS = 16

/** Returns the statements that insert rows, several if one INSERT could not take them all. */
export function inBatches<Row>(
  rows: readonly Row[],
  insert: (some: readonly Row[]) => Statement,
): Statement[] {
  const statements: Statement[] = []
  for (let at = 0; at < rows.length; at += MAX_ROWS) {
    const some = rows.slice(at, at + MAX_ROWS)
    statements.push({ ...insert(some), isScript: some.length > MAX_PREPARED_ROWS })
  }
  return statements
}

/** Returns statements that insert rows; `conflict` is the ON CONFLICT clause for rows that exist already. */
export function insertStatements(
  table: string,
  columns: readonly string[],
  rows: readonly (readonly Value[])[],
  conflict = '',
): Statement[] {
  return inBatches(rows, (some) => ({
    text: `INSERT INTO ${table} (${columns.join(', ')}) ${valuesList(some.length, columns)} ${conflict}`,
    values: some.flat(),
  }))
}

/** Returns `VALUES ($1,$2),($3,$4)` for this number of rows. */
export function valuesList(
  rows: number,
  columns: readonly string[],
  { after = 0, types }: { readonly after?: number; readonly types?: readonly string[] } = {},
): string {
  const groups = Array.from({ length: rows }, (_, row) => {
    const places = columns.map((_, column) => {
      const type = types ? `::${types[column]}` : ''
      return `$${after + row * columns.length + column + 1}${type}`
    })
    return `(${places.join(',')})`
  })
  return `VALUES ${groups.join(',')}`
}
