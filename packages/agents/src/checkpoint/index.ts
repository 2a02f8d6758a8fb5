export type {
  CheckpointErrorHandler,
  CheckpointMetadata,
  CheckpointStore,
  FullCheckpointStore,
  JournalingStore,
  SaveOptions,
} from '../contract/checkpoint-store.ts'
export { fileCheckpoints, type FileCheckpointOptions } from './file-checkpoints-node.ts'
export { memoryCheckpoints, type MemoryCheckpointOptions } from './memory-checkpoints.ts'
export { encryptedCheckpoints, type EncryptedCheckpointOptions } from './encrypted-checkpoints.ts'
export {
  sqliteCheckpoints,
  type SqliteCheckpointOptions,
  type SqliteCheckpoints,
} from './sqlite-checkpoints-node.ts'
export { CheckpointConflict, forkCheckpoint } from './versions.ts'
export { foldJournal } from './saved-state.ts'
