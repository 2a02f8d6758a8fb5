export { createRuntime, type EmbeddedRuntime, type RuntimeOptions } from './runtime.ts'
export type * from './runtime-api.ts'
export type * from './thread-state.ts'
export type * from './event.ts'
export { EVENT_VERSION } from './event.ts'
export { RuntimeError, type RuntimeErrorCode } from './error.ts'
export * from './definitions/index.ts'
export type * from './store/store.ts'
export { StoreError, isStoreError } from './store/store.ts'
export { memoryStore } from './store/memory-store.ts'
export { sqliteStore, type SqliteStore, type SqliteStoreOptions } from './store/sqlite-store.ts'
export type { Dispatcher, Drain } from './dispatch/dispatcher.ts'
export {
  inProcessDispatcher,
  type InProcessDispatcherOptions,
} from './dispatch/in-process-dispatcher.ts'
export { systemTimers, type TimerHandle, type Timers } from './dispatch/timers.ts'
export type { RuntimeLimits } from './context.ts'
export {
  memoryGovernanceKeys,
  openGovernanceKeys,
  type GovernanceKeys,
} from './governance/governance-keys.ts'
export { grantPolicy, type GrantPolicyOptions, type ToolGrant } from './governance/grant-policy.ts'
export { verifyAudit, type VerifyAuditOptions } from './governance/audit-export.ts'
