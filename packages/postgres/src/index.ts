export { postgresStore, type PostgresStore, type PostgresStoreOptions } from './postgres-store.ts'
export type { BlobStore } from './blobs.ts'
export { tenantAccessSql } from './schema.ts'
export { queueDispatcher, type QueueDispatcherOptions } from './queue-dispatcher.ts'
