/**
 * A report reads the tables with SQL, through a role that sees the rows of one tenant. The database keeps tenants
 * apart, whatever the query says.
 *
 * Prints:
 *
 *     acme sees 2 of 3 threads
 *     beta sees 1 of 3 threads
 *     without a tenant: 0
 */

// #region program
import { randomBytes } from 'node:crypto'
import { postgresStore, tenantAccessSql } from '@skein/postgres'
import pg from 'pg'
import { database } from './postgres-database.ts'

const { url, stop } = await database()
const schema = `example_${randomBytes(4).toString('hex')}`
const store = await postgresStore({ connectionString: url, schema })
for (const [id, tenant] of Object.entries({ a: 'acme', b: 'acme', c: 'beta' })) {
  const none = { owner: null, parentId: null, title: null, tags: [], clientId: null }
  const create = { ...none, tenant, agent: 'greeter', rootId: id, createdAt: Date.now() }
  await store.commit({ point: 'example', threads: [{ id, create }] })
}

const client = new pg.Client({ connectionString: url })
await client.connect()
await client.query(tenantAccessSql({ schema, role: 'skein_app' })) // once, by an administrator

async function countFor(tenant: string | undefined): Promise<string | undefined> {
  await client.query('BEGIN')
  await client.query('SET LOCAL ROLE skein_app')
  if (tenant) await client.query(`SELECT set_config('skein.tenant', $1, true)`, [tenant])
  const { rows } = await client.query<{ count: string }>(`SELECT count(*) FROM ${schema}.threads`)
  await client.query('COMMIT')
  return rows[0]?.count
}

for (const tenant of ['acme', 'beta'])
  console.log(`${tenant} sees ${await countFor(tenant)} of 3 threads`)
console.log(`without a tenant: ${await countFor(undefined)}`)
await client.end()
await store.close()
// #endregion program
await stop()
