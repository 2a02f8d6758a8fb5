import { statSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** Opens a store to read it alone: a folder with skein.db, or the file. A server may use it at the same time. */
export async function openRecordings(
  named: string,
): Promise<ReturnType<(typeof import('@skein/runtime'))['readSqliteStore']>> {
  const { readSqliteStore } = await import('@skein/runtime')
  const path = resolve(named)
  const isFile = statSync(path, { throwIfNoEntry: false })?.isFile() === true
  return readSqliteStore(isFile ? path : join(path, 'skein.db'))
}
