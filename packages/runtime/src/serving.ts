// For authors of servers: what `@skein/server` needs of a runtime beyond the public list of the package.
export { APPROVAL_GIVEN, isIrreversible } from './api/inbox.ts'
export { CLIENT_TOOLS } from './calls/tool-list.ts'
export { decodeCursor, encodeCursor } from './contract/cursor.ts'
export { agentRegistrations, EVENT_VERSION } from './contract/event.ts'
export {
  IF_BUSY,
  type ApprovalDecision,
  type AuditPage,
  type ChildInfo,
  type ForkedThread,
  type ForkThread,
  type FoundEffect,
  type LimitsReport,
  type ModelLogDetail,
  type StandingGrant,
  type ThreadEffects,
  type ThreadEnv,
  type ThreadFiles,
  type ThreadGrants,
  type ThreadValues,
  type ThreadVariables,
  type UserValues,
  type VariablesRequest,
  type WaitingDetail,
  type WaitingSelection,
} from './contract/runtime-api.ts'
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
