import type { DatabaseSync, SQLOutputValue } from 'node:sqlite'

/** A database as statements that make the same one again, one row a line. */
export function sqlDump(database: DatabaseSync): string {
  const pragma = (name: string): string =>
    `PRAGMA ${name} = ${Number(database.prepare(`PRAGMA ${name}`).get()?.[name])};`
  const schema = database
    .prepare(
      "SELECT name, type, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type != 'table', name",
    )
    .all()
  const tables = schema.flatMap(({ name, type }) => (type === 'table' ? [String(name)] : []))
  return [
    // Rows of one table may name those of a later one.
    'PRAGMA foreign_keys = OFF;',
    'BEGIN;',
    ...schema.flatMap(({ type, sql }) => (type === 'trigger' ? [] : [`${String(sql)};`])),
    ...tables.flatMap((name) => rowsOf(database, name)),
    // Triggers would write rows again that the dump has.
    ...schema.flatMap(({ type, sql }) => (type === 'trigger' ? [`${String(sql)};`] : [])),
    pragma('application_id'),
    pragma('user_version'),
    'COMMIT;',
    '',
  ].join('\n')
}

function rowsOf(database: DatabaseSync, table: string): string[] {
  return database
    .prepare(`SELECT * FROM ${table} ORDER BY 1, 2`)
    .all()
    .map((row) => `INSERT INTO ${table} VALUES (${Object.values(row).map(literal).join(', ')});`)
}

function literal(value: SQLOutputValue): string {
  if (value === null) return 'NULL'
  if (typeof value === 'string') return `'${value.replaceAll("'", "''")}'`
  if (value instanceof Uint8Array) return `X'${Buffer.from(value).toString('hex')}'`
  return String(value)
}
