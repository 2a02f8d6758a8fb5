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
export { GovernanceError, reason, REASON_CODES, type Reason, type ReasonCode } from './reason.ts'
export { actionDigest, hashJson, hashText } from './digest.ts'
export type { Action, Decision, Policy } from './policy.ts'
export { rules, standardPolicy, type Rule, type RulesOptions } from './rules.ts'
export type {
  ApprovalAnswer,
  ApprovalRequest,
  Approvals,
  Approver,
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
export { memoryPayloads } from './memory-payloads.ts'
export type { JournalEvent, JournalEventType, JournalItem } from './journal-event.ts'
export {
  governed,
  toolCore,
  type EvidenceClaim,
  type Governance,
  type GovernedContext,
  type GovernedTool,
  type PlainTool,
  type Probed,
  type ToolCore,
} from './governed.ts'
export { NoEffectError } from './no-effect.ts'
export {
  defineVerifier,
  type Verifier,
  type VerifierAnswer,
  type VerifierContext,
} from './define-verifier.ts'
export {
  defineTaskClass,
  type RepairPolicy,
  type TaskClass,
  type TaskLimits,
} from './define-task-class.ts'
export type { Delivered, FailedSafe, Pending, Receipt, Result, Undo } from './result.ts'
export type { CallOptions, CallResult, Init, Run } from './run.ts'
export {
  governor,
  type Denial,
  type Governor,
  type Opening,
  type Resume,
} from './governor/governor.ts'
export type { GovernorLimits, GovernorOptions, Undoer } from './governor/governor-options.ts'
export type { CallState, GovernorState } from './governor/governor-state.ts'
export type { Admission, CallRequest } from './governor/admit.ts'
export type { CallOutcome, Settlement } from './governor/settle.ts'
export type { Delivery } from './governor/deliver.ts'
export type { OpenRequest } from './governor/open.ts'
export type { AdmittedCall } from './governor/request.ts'
export type { Recovered } from './governor/recover.ts'
export type { Timer } from './governor/timer.ts'
export { canTransition, isTerminal, TRANSITIONS } from './transitions.ts'
export { parseEnvelope, validateEnvelope, validateEvidence, validateReport } from './validate.ts'
export type { ValidationLevel } from './validate.ts'
export type { Issue } from './validate-schema.ts'
export { isSupportedVersion } from './version.ts'
export { checkChunks, type ChunkFault } from './check-chunks.ts'
