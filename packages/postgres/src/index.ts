export { postgresStore, type PostgresStore, type PostgresStoreOptions } from './postgres-store.ts'
export type { BlobStore } from './blobs.ts'
export { pollingLink, postgresLink, type PostgresLinkOptions } from './link.ts'
export { tenantAccessSql } from './schema.ts'
