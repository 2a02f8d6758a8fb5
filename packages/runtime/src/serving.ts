// For authors of servers: what `@skein/server` needs of a runtime beyond the public list of the package.
export { APPROVAL_GIVEN } from './api/partial-approvals.ts'
export { isIrreversible } from './api/approval-request.ts'
export { CLIENT_TOOLS } from './calls/gate.ts'
export { decodeCursor, encodeCursor } from './contract/cursor.ts'
export { agentRegistrations, EVENT_VERSION } from './contract/event.ts'
export { IF_BUSY } from './contract/send-message.ts'
export type { ApprovalDecision, FoundEffect, WaitingSelection } from './contract/inbox.ts'
export type { AuditPage } from './contract/audit-export.ts'
export type { ChildInfo } from './contract/thread-info.ts'
export type { ForkThread, ForkedThread } from './contract/new-thread.ts'
export type { LimitsReport } from './contract/operator-limits.ts'
export type { ModelLogDetail } from './contract/model-log.ts'
export type { StandingGrant, ThreadGrants } from './contract/thread-grants.ts'
export type {
  ThreadEffects,
  ThreadEnv,
  ThreadFiles,
  ThreadValues,
} from './contract/thread-contents.ts'
export type { ThreadVariables, VariablesRequest } from './contract/thread-variables.ts'
export type { UserValues } from './contract/user-values.ts'
export type { WaitingDetail } from './contract/waiting-item.ts'
export type { SubscribeOptions } from './contract/subscription.ts'
export { toThreadUsage } from './contract/usage.ts'
export { checksAnswers, type ResolvedPrompt, type ResolvedTool } from './definitions/resolved.ts'
export type { TimerHandle } from './dispatch/dispatcher.ts'
export { deltaOf, frameOf } from './model/log.ts'
export type { RuntimeNode } from './nodes/nodes.ts'
export { doPart, nextTurn } from './store/next-turn.ts'
export { isUnwritable, type UserOf, type UserValue } from './store/store.ts'
export { isParked } from './store/thread-head.ts'
export { guardedLogger, loggedError } from './telemetry/logger.ts'
export { withTraceparent } from './telemetry/telemetry.ts'
