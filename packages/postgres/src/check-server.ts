import { StoreError } from '@skein/runtime'

/** The oldest version of PostgreSQL that understands the SQL of the schema (NULLS NOT DISTINCT). */
const OLDEST = 15

/** Throws unless the server is new enough and its database stores UTF-8. */
export function checkServer(facts: Readonly<Record<string, unknown>>): void {
  const { major, encoding } = facts
  if (Number(major) < OLDEST)
    throw new StoreError(`The server is PostgreSQL ${String(major)}; ${OLDEST} is the oldest.`, {
      code: 'STORE_VERSION',
      hint: 'Update the server.',
    })
  if (encoding !== 'UTF8')
    throw new StoreError(`The database has the encoding ${String(encoding)}, not UTF8.`, {
      code: 'STORE_VERSION',
      hint: "Create a database with ENCODING 'UTF8'.",
    })
}
