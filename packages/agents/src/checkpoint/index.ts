export type { CheckpointMetadata, CheckpointStore } from '../checkpoint.ts'
