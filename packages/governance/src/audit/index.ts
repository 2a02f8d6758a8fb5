export { memoryLog, type MemoryLog, type MemoryLogOptions } from './memory-log.ts'
export {
  verifyLog,
  type LogFault,
  type LogFaultKind,
  type LogVerdict,
  type VerifyLogOptions,
} from './verify-log.ts'

export {
  cosignCheckpoint,
  countWitnesses,
  parseCheckpoint,
  signCheckpoint,
  verifyCheckpoint,
  type TreeHead,
} from './checkpoint.ts'
export { encodeNoteKey } from './checkpoint.ts'
export {
  CompactRange,
  leafHash,
  verifyConsistency,
  verifyInclusion,
  type TreeHash,
} from './merkle.ts'
export { commitFields, openFields, type CommitOptions } from './redactable.ts'
export { DELIVERY_PREDICATE, signStatement, toStatement, verifyStatement } from './statement.ts'
