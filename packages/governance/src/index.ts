export {
  CONTROL_CLASSES,
  OUTCOMES,
  RISKS,
  STATES,
  UAICP_VERSION,
  type Actor,
  type ControlClass,
  type Envelope,
  type Hash,
  type Identity,
  type Outcome,
  type Risk,
  type RollbackAction,
  type State,
  type Streaming,
} from './envelope.ts'
export {
  EVIDENCE_TYPES,
  type Evidence,
  type EvidenceType,
  type MissingNeed,
  type Need,
} from './evidence.ts'
export { CHECK_RESULTS, REPORT_STATUSES, type Check, type VerificationReport } from './report.ts'
export { GovernanceError, REASON_CODES, type Reason, type ReasonCode } from './reason.ts'
export { actionDigest, hashJson, hashText } from './digest.ts'
export type { Action, Decision, Policy } from './policy.ts'
export type {
  ApprovalAnswer,
  ApprovalRequest,
  Approvals,
  Approver,
  Issuer,
  Redemption,
  SpentStore,
} from './approval.ts'
export type {
  AppendOptions,
  AuditLog,
  Checkpoint,
  Journal,
  JournalEntry,
  JournalRecord,
  PayloadStore,
  ReadOptions,
} from './audit-log.ts'
export type { JournalEvent, JournalEventType, JournalItem } from './journal-event.ts'
export type {
  EvidenceClaim,
  Governance,
  GovernedContext,
  GovernedTool,
  PlainTool,
  Probed,
} from './governed.ts'
export type { Verifier, VerifierAnswer, VerifierContext } from './define-verifier.ts'
export type { RepairPolicy, TaskClass, TaskLimits } from './define-task-class.ts'
export type { Delivered, FailedSafe, Pending, Receipt, Result, Undo } from './result.ts'
export type { CallOptions, CallResult, Init, Run } from './run.ts'
