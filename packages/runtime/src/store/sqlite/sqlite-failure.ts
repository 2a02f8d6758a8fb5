import { StoreError, isStoreError } from '../store-error.ts'

const READ_ONLY = 8

const IO = 10

const CORRUPT = 11

const FULL = 13

const CANNOT_OPEN = 14

const TOO_BIG = 18

const NO_LARGE_FILES = 22

const NOT_A_DATABASE = 26

/** Returns SQLite's primary result code of an error. */
export function sqliteCode(error: unknown): number | undefined {
  if (!(error instanceof Error && 'errcode' in error)) return undefined
  return typeof error.errcode === 'number' ? error.errcode & 0xff : undefined
}

/**
 * Converts an error of SQLite or of the file system to a `StoreError` that says what to do; returns any other
 * error unchanged.
 */
export function sqliteFailure(error: unknown, path: string): unknown {
  if (isStoreError(error)) return error
  const code = sqliteCode(error)
  // All statements are fixed, so a missing table or column means that the schema is damaged.
  const isSchemaDamaged = code === 1 && /no such (?:table|column)|has no column/.test(String(error))
  if (code === CORRUPT || code === NOT_A_DATABASE || isSchemaDamaged)
    return new StoreError(`The store ${path} is damaged or not a database.`, {
      code: 'STORE_CORRUPT',
      hint: 'Keep the file to examine it with the `sqlite3` command, and open a backup in its place.',
      cause: error,
    })
  return unwritable(error, path) ?? error
}

/** Returns the error for a file that cannot be written; undefined if the cause is something else. */
export function unwritable(cause: unknown, path: string): StoreError | undefined {
  const system = cause instanceof Error && 'code' in cause ? cause.code : undefined
  switch (sqliteCode(cause) ?? system) {
    case FULL:
    case 'ENOSPC':
    case 'EDQUOT':
      return new StoreError(`The store ${path} is full: nothing more can be written.`, {
        code: 'STORE_FULL',
        hint: 'Free space on its disk, or raise `maxBytes` if the store has that limit. Work then continues by itself.',
        cause,
      })
    case READ_ONLY:
    case CANNOT_OPEN:
    case 'EROFS':
    case 'EACCES':
    case 'EPERM':
      return new StoreError(`The store ${path} cannot be written by this process.`, {
        code: 'STORE_READ_ONLY',
        hint: 'Check that its disk is not mounted read-only, and that this user may write the file and its folder.',
        cause,
      })
    case TOO_BIG:
      return new StoreError(`A row is too big for the store ${path}.`, {
        code: 'STORE_LIMIT',
        hint: 'SQLite stores at most 1 GB in one row. Split the content into several files.',
        cause,
      })
    case IO:
    case NO_LARGE_FILES:
    case 'EFBIG':
    case 'EIO':
      return new StoreError(`The operating system refused to write or read the store ${path}.`, {
        code: 'STORE_LIMIT',
        hint: 'Check the file size limit of the process (`ulimit -f`), the quota of the user and the health of the disk.',
        cause,
      })
    default:
      return undefined
  }
}
