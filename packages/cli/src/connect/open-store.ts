import type { RuntimeOptions, Store, StoreRow } from '@skein/runtime'
import type { StoreAddress } from '../config/refusals.ts'
import { CommandError } from '../terminal/command.ts'

/** A store of `@skein/postgres`, with what copies and doctors need of it. */
export interface PostgresStoreLike extends Store {
  /** Yields everything in the store, as of one moment. */
  rows(): AsyncIterable<StoreRow>
  /** Fills a store that has no threads: with all rows, or with none. */
  load(rows: AsyncIterable<StoreRow>): Promise<void>
}

/** What this command uses of `@skein/postgres`, which is installed only where it is needed. */
export interface PostgresPackage {
  postgresStore(options: { readonly connectionString: string }): Promise<PostgresStoreLike>
  postgresLink(options: { readonly connectionString: string }): unknown
  queueDispatcher(options: object): RuntimeOptions['dispatcher']
}

/** Loads a package that not every installation has. The error names the setting that asked for it. */
export async function optionalPackage<T>(name: string, setting: string): Promise<T> {
  try {
    return (await import(name)) as T // the packages are released together, and a test uses the real ones
  } catch (cause) {
    const { code, message } = cause as { readonly code?: unknown; readonly message?: string }
    if (code !== 'ERR_MODULE_NOT_FOUND' || !message?.includes(name)) throw cause
    throw new CommandError(`The setting ${setting} needs ${name}, which is not installed.`, {
      code: 'PACKAGE_MISSING',
      hint: `npm install ${name}`,
      cause,
    })
  }
}

/** Opens the store at an address. */
export async function openStore(address: StoreAddress): Promise<Store> {
  if (address.type === 'postgres') return openPostgres(address.connectionString)
  const { sqliteStore } = await import('@skein/runtime')
  return sqliteStore({ path: address.path })
}

/** Opens a store in PostgreSQL. */
export async function openPostgres(connectionString: string): Promise<PostgresStoreLike> {
  const { postgresStore } = await optionalPackage<PostgresPackage>('@skein/postgres', 'store')
  return postgresStore({ connectionString })
}
