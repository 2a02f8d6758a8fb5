export type { CheckpointMetadata, CheckpointStore } from '../checkpoint.ts'
export { fileCheckpoints, type FileCheckpointOptions } from './file-checkpoints-node.ts'
export { memoryCheckpoints, type MemoryCheckpointOptions } from './memory-checkpoints.ts'
export { encryptedCheckpoints, type EncryptedCheckpointOptions } from './encrypted-checkpoints.ts'
export {
  foldJournal,
  type FullCheckpointStore,
  type JournalEntry,
  type JournalingStore,
} from './journal.ts'
export type { CheckpointErrorHandler } from './report-error.ts'
