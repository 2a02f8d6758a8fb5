export { memoryLog, type MemoryLog, type MemoryLogOptions } from './memory-log.ts'
export {
  verifyLog,
  type LogFault,
  type LogFaultKind,
  type LogVerdict,
  type VerifyLogOptions,
} from './verify-log.ts'
export type { LogSource } from './log-lines.ts'
export {
  cosignCheckpoint,
  countWitnesses,
  parseCheckpoint,
  signCheckpoint,
  verifyCheckpoint,
  type ParsedCheckpoint,
  type TreeHead,
  type Witness,
} from './checkpoint.ts'
export { encodeNoteKey } from './checkpoint.ts'
export {
  CompactRange,
  leafHash,
  verifyConsistency,
  verifyInclusion,
  type ConsistencyClaim,
  type TreeHash,
  type InclusionClaim,
} from './merkle.ts'
export { commitFields, openFields, type CommitOptions } from './redactable.ts'
export {
  DELIVERY_PREDICATE,
  signStatement,
  toStatement,
  verifyStatement,
  type DeliveryPredicate,
  type DeliveryStatement,
  type DsseEnvelope,
} from './statement.ts'
