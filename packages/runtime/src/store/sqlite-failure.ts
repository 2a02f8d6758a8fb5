import { isStoreError, StoreError } from './store.ts'

const CORRUPT = 11
const NOT_A_DATABASE = 26

/** The result code of SQLite behind an error, without its details. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error && 'errcode' in error)) return undefined
  return typeof error.errcode === 'number' ? error.errcode & 0xff : undefined
}

/** What callers are told: a damaged file by its code, anything else as it is. */
export function sqliteFailure(error: unknown, path: string): unknown {
  const code = sqliteCode(error)
  if (isStoreError(error) || (code !== CORRUPT && code !== NOT_A_DATABASE)) return error
  return new StoreError(`The store ${path} is damaged or no database.`, {
    code: 'STORE_CORRUPT',
    hint: 'Keep the file for a look with the `sqlite3` command, and open a backup in its place.',
    cause: error,
  })
}
