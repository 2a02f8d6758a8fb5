export type {
  CheckpointErrorHandler,
  CheckpointMetadata,
  CheckpointStore,
  JournalingStore,
} from '../contract/checkpoint-store.ts'
export { fileCheckpoints, type FileCheckpointOptions } from './file-checkpoints-node.ts'
export { memoryCheckpoints, type MemoryCheckpointOptions } from './memory-checkpoints.ts'
export { encryptedCheckpoints, type EncryptedCheckpointOptions } from './encrypted-checkpoints.ts'
export { foldJournal } from './saved-state.ts'
