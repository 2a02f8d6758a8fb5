import type { RuntimeOptions, Store, StoreRow } from '@skein/runtime'
import type { StoreAddress } from '../config/refusals.ts'
import { optionalPackage } from './optional-package.ts'

/** A store of `@skein/postgres`, with the methods that `skein store` (copies, backups) and `skein doctor` use. */
export interface PostgresStoreLike extends Store {
  /** Yields everything in the store, as it was at one moment. */
  rows(): AsyncIterable<StoreRow>
  /** Fills a store that has no threads. If it fails, nothing is written. */
  load(rows: AsyncIterable<StoreRow>): Promise<void>
  /** Reads the clock of the database, in ms. */
  now(): Promise<number>
}

/** The part of `@skein/postgres` that commands use. The package is optional, so its types are repeated here. */
export interface PostgresPackage {
  postgresStore(options: {
    readonly connectionString: string
    readonly isPooled?: boolean
  }): Promise<PostgresStoreLike>
  postgresLink(options: {
    readonly connectionString: string
  }): NonNullable<RuntimeOptions['nodes']>['link']
  queueDispatcher(options: object): RuntimeOptions['dispatcher']
}

/** Opens the store at an address. */
export async function openStore(
  address: StoreAddress,
  options: { readonly isPooled: boolean },
): Promise<Store> {
  if (address.type === 'postgres') return openPostgres(address.connectionString, options)
  const { sqliteStore } = await import('@skein/runtime')
  return sqliteStore({ path: address.path })
}

/** Opens a store in PostgreSQL. */
export async function openPostgres(
  connectionString: string,
  options: { readonly isPooled?: boolean } = {},
): Promise<PostgresStoreLike> {
  const { postgresStore } = await optionalPackage<PostgresPackage>('@skein/postgres', 'store')
  return postgresStore({ connectionString, ...options })
}
