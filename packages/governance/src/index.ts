export {
  RISKS,
  UAICP_VERSION,
  type Actor,
  type Envelope,
  type Identity,
  type Risk,
  type RollbackAction,
  type State,
  type Streaming,
} from './contract/envelope.ts'
export { EVIDENCE_TYPES, type Evidence, type MissingNeed, type Need } from './contract/evidence.ts'
export { type Check, type VerificationReport } from './contract/evidence.ts'
export {
  GovernanceError,
  reason,
  REASON_CODES,
  type Reason,
  type ReasonCode,
} from './contract/reason.ts'
export { actionDigest, hashJson, hashText } from './contract/envelope.ts'
export type { Action, Decision, Policy } from './contract/policy.ts'
export { rules, standardPolicy, type Rule } from './contract/policy.ts'
export type {
  ApprovalAnswer,
  ApprovalRequest,
  Approvals,
  Approver,
  Redemption,
  RefusedToken,
} from './contract/approval.ts'
export type { SpentStore } from './contract/spent-store.ts'
export type {
  AuditAppendOptions,
  AuditLog,
  Checkpoint,
  Journal,
  JournalEntry,
  JournalRecord,
  LogReadOptions,
} from './journal/journal.ts'
export type { JournalEvent, JournalItem, UndoStatus } from './journal/events.ts'
export {
  governed,
  toolCore,
  type EvidenceClaim,
  type Governance,
  type GovernedContext,
  type GovernedTool,
  type Probed,
} from './contract/governed.ts'
export { NoEffectError } from './contract/reason.ts'
export {
  defineVerifier,
  type Verifier,
  type VerifierAnswer,
  type VerifierContext,
} from './contract/governed.ts'
export { defineTaskClass, type TaskClass, type TaskLimits } from './contract/governed.ts'
export type { Delivered, FailedSafe, Pending, Receipt, Result, Undo } from './contract/run.ts'
export type { CallResult, Init, Run } from './contract/run.ts'
export { type DoubtDecision, governor, type Governor } from './governor.ts'
export type { Delegate, GovernorLimits, GovernorOptions } from './governor/options.ts'

export type { Admission } from './governor/admit.ts'
export type { GovernedOutcome, Settlement } from './governor/settle.ts'
export type { Delivery, JudgedCandidate } from './governor/deliver.ts'
export type { FailOptions } from './governor/fail.ts'

export type { PayloadStore } from './contract/evidence.ts'
export { memoryPayloads } from './contract/evidence.ts'
export type { Opening } from './contract/run.ts'
export type { AdmittedCall } from './governor/admitted-call.ts'
