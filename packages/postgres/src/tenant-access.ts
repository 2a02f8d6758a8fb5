import { quoted } from './quoted.ts'

/** The tables that a role made by `tenantAccessSql` may read, restricted to the rows of one tenant. */
const TENANT_TABLES = [
  'threads',
  'events',
  'blobs',
  'blob_chunks',
  'blob_names',
  'audit_trees',
  'audit',
  'user_values',
  'waiting',
]

/**
 * Returns the statements with which an administrator gives a role read access to the rows of one tenant, e.g.
 * for reports. The role sees the tenant that the setting `skein.tenant` names:
 *
 *     BEGIN; SET LOCAL ROLE skein_app; SET LOCAL skein.tenant = 'acme'; SELECT … FROM skein.threads; COMMIT
 *
 * Anyone who may write SQL may also change the setting, so the role is for programs that set it, not for people.
 */
export function tenantAccessSql({
  schema = 'skein',
  role = 'skein_app',
}: {
  readonly schema?: string
  readonly role?: string
} = {}): string {
  const s = quoted(schema)
  const tables = TENANT_TABLES.map((table) => `${s}.${table}`).join(', ')
  return `DO $$ BEGIN CREATE ROLE ${quoted(role)} NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
GRANT USAGE ON SCHEMA ${s} TO ${quoted(role)};
GRANT SELECT ON ${tables} TO ${quoted(role)};
`
}
