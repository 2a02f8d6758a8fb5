export { memoryLog, type MemoryLog } from './memory-log.ts'
export { verifyLog, type LogFault, type LogVerdict } from './verify-log.ts'

export {
  cosignCheckpoint,
  countWitnesses,
  parseCheckpoint,
  signCheckpoint,
  verifyCheckpoint,
  type ParsedCheckpoint,
} from './checkpoint.ts'
export { encodeNoteKey } from './checkpoint.ts'
export {
  CompactRange,
  leafHash,
  verifyConsistency,
  verifyInclusion,
  type TreeHash,
} from './merkle.ts'
export { commitFields, openFields } from './redactable.ts'
export {
  signStatement,
  toStatement,
  verifyStatement,
  type DeliveryStatement,
  type DsseEnvelope,
} from './statement.ts'
