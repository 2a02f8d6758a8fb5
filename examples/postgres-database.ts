import { startPostgres } from '../packages/postgres/test/server.ts'

/**
 * The database of the examples: the one that DATABASE_URL names, or a server from npm that lives as long as the
 * example (Linux x64).
 */
export async function database(): Promise<{ readonly url: string; stop(): Promise<void> }> {
  const url = process.env['DATABASE_URL']
  return url === undefined ? startPostgres() : { url, stop: async () => {} }
}
