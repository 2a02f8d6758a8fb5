export { createRuntime, type EmbeddedRuntime, type RuntimeOptions } from './runtime.ts'
export type { Runtime } from './contract/runtime-api.ts'
export type { CreateThread, CreatedThread, ThreadId } from './contract/new-thread.ts'
export type { ToolFailure } from './contract/tool-failure.ts'
export type { SendMessage, Sent } from './contract/send-message.ts'
export type { SessionResult } from './contract/session-result.ts'
export type { WaitingItem } from './contract/waiting-item.ts'
export type { Inbox } from './contract/inbox.ts'
export type { ModelLog } from './contract/model-log.ts'
export type { CostReport } from './contract/cost-report.ts'
export type { Threads } from './contract/threads.ts'
export type { ThreadInfo } from './contract/thread-info.ts'
export type { AuditExport } from './contract/audit-export.ts'
export type { NumberedEvent } from './contract/subscription.ts'
export type * from './contract/thread-state.ts'
export type { RuntimeEvent, StoredEvent } from './contract/event.ts'
export { FOUND_EFFECTS } from './contract/inbox.ts'
export { RuntimeError, type RuntimeErrorCode } from './contract/error.ts'
export {
  asSubagent,
  defineAgent,
  defineEffect,
  defineEndpoint,
  defineHook,
  defineModel,
  definePrompt,
  withModel,
  type AgentDeclaration,
} from './definitions/define.ts'
export { defineTool, toolFrom, type RunnableTool } from './definitions/define-tool.ts'
export { inWorker, type WorkerToolContext } from './definitions/in-worker.ts'
export { DefinitionError } from './definitions/resolved.ts'
export type {
  AgentDefinition,
  SimpleAgent,
  Budget,
  SideConfig,
  SessionToolBinding,
  PromptDefinition,
  VariableDefinition,
  PromptTool,
  SubagentToolConfig,
  ModelDefinition,
  ToolGovernance,
  ToolDefinition,
  RuntimeToolContext,
  HookDefinition,
  EffectContext,
  EffectDefinition,
  EndpointDefinition,
} from './definitions/types.ts'
export type { HookSignatures } from './definitions/hooks.ts'
export type { ResolvedAgent, Registry, Problem } from './definitions/resolved.ts'
export { createRegistry, type RegistryOptions } from './definitions/load/registry.ts'
export { discover, type DiscoveredRegistry } from './definitions/load/discover.ts'
export { catalog } from './definitions/load/catalog.ts'
export type {
  ThreadLifecycle,
  ThreadHead,
  ThreadChange,
  Commit,
  Blob,
  CommitResult,
  Claim,
  ClaimOptions,
  HeldThread,
  Lease,
  ThreadQuery,
  Store,
  StoreRow,
  StoreTotals,
  ListPlace,
  WaitingKind,
  WaitingPlace,
  WaitingQuery,
  WaitingRow,
} from './store/store.ts'
export { StoreError, isStoreError, removalsOf, type StoreErrorCode } from './store/store.ts'
export {
  planCommit,
  planErase,
  storedText,
  type CommitPlan,
  type StoreView,
} from './store/plan-commit.ts'
export {
  claimedHead,
  completeHead,
  isStorable,
  pageOf,
  placeOf,
  searchText,
} from './store/thread-head.ts'
export { headColumns, headOfRow, type HeadColumns, type HeadValue } from './store/head-row.ts'
export { QuestionLog, waitingLimit, type WaitingChange } from './store/waiting-rows.ts'
export { memoryStore } from './store/memory-store.ts'
export { sqliteStore, type SqliteStore } from './store/sqlite/sqlite-store.ts'
export { loadSqliteStore } from './store/sqlite/sqlite-copy.ts'
export { readSqliteStore, verifyStore } from './store/sqlite/sqlite-verify.ts'
export { findStranded, type StrandedReport } from './stranded.ts'
export type { Dispatcher, Drain, DrainEnd, NodeLink, NodeNotice } from './dispatch/dispatcher.ts'
export { inProcessDispatcher } from './dispatch/in-process-dispatcher.ts'
export { systemTimers, type Timers } from './dispatch/dispatcher.ts'
export type { SecretKeyOptions } from './secrets/vault.ts'
export type { RuntimeLimits } from './contract/limits.ts'
export type { RuntimeTelemetry } from './telemetry/telemetry.ts'
export { lineLogger, type RuntimeLogger } from './telemetry/logger.ts'
export {
  memoryGovernanceKeys,
  openGovernanceKeys,
  type GovernanceKeys,
} from './governance/governance-keys.ts'
export { verifyAudit } from './governance/audit-export.ts'
