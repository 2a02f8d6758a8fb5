export type {
  CheckpointMetadata,
  CheckpointStore,
  FullCheckpointStore,
  SaveOptions,
} from '../contract/checkpoint-store.ts'
export { fileCheckpoints, type FileCheckpointOptions } from './file-checkpoints-node.ts'
export { memoryCheckpoints } from './memory-checkpoints.ts'
export { encryptedCheckpoints } from './encrypted-checkpoints.ts'
export { sqliteCheckpoints, type SqliteCheckpoints } from './sqlite-checkpoints-node.ts'
export { CheckpointConflict } from './checkpoint-conflict.ts'
export { forkCheckpoint } from './versions.ts'
export { foldJournal } from './fold-journal.ts'
export { packTree, unpackTree } from './packed-tree.ts'
