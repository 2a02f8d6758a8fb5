export { createRuntime, type EmbeddedRuntime } from './runtime.ts'
export type { RuntimeOptions } from './runtime-options.ts'
export type { Runtime } from './contract/runtime-api.ts'
export type { CreateThread, CreatedThread, ThreadId } from './contract/new-thread.ts'
export type { ToolFailure } from './contract/tool-failure.ts'
export type { SendMessage, Sent } from './contract/send-message.ts'
export type { SessionResult } from './contract/session-result.ts'
export type { WaitingItem } from './contract/waiting-item.ts'
export type { Inbox } from './contract/inbox.ts'
export type { ModelLog, ModelLogDetail } from './contract/model-log.ts'
export type { CostReport } from './contract/cost-report.ts'
export type { Threads } from './contract/threads.ts'
export type { ThreadInfo } from './contract/thread-info.ts'
export type { AuditExport } from './contract/audit-export.ts'
export type { NumberedEvent } from './contract/subscription.ts'
export type * from './contract/thread-state.ts'
export type { RuntimeEvent, StoredEvent } from './contract/event.ts'
export { rebuildRequests } from './model/read-log.ts'
export { FOUND_EFFECTS } from './contract/inbox.ts'
export { RuntimeError, type RuntimeErrorCode } from './contract/error.ts'
export { asSubagent } from './definitions/as-subagent.ts'
export { defineAgent, withModel, type AgentDeclaration } from './definitions/define-agent.ts'
export { defineEffect } from './definitions/define-effect.ts'
export { defineEndpoint, defineHook, defineModel, definePrompt } from './definitions/define.ts'
export { defineTool, toolFrom, type RunnableTool } from './definitions/define-tool.ts'
export { inWorker, type WorkerToolContext } from './definitions/in-worker.ts'
export { DefinitionError } from './definitions/definition-error.ts'
export type {
  AgentDefinition,
  Budget,
  SessionToolBinding,
  SideConfig,
  SimpleAgent,
} from './definitions/agent-definition.ts'
export type {
  PromptDefinition,
  PromptTool,
  SubagentToolConfig,
  VariableDefinition,
} from './definitions/prompt-definition.ts'
export type { ModelDefinition } from './definitions/model-definition.ts'
export type {
  RuntimeToolContext,
  ToolDefinition,
  ToolGovernance,
} from './definitions/tool-definition.ts'
export type { HookDefinition } from './definitions/hook-definition.ts'
export type { EffectContext, EffectDefinition } from './definitions/effect-definition.ts'
export type { EndpointDefinition } from './definitions/endpoint-definition.ts'
export type { HookSignatures } from './definitions/hooks.ts'
export type {
  ResolvedAgent,
  ResolvedModel,
  ResolvedPrompt,
  ResolvedSide,
  ResolvedTool,
  Registry,
} from './definitions/resolved.ts'
export type { Problem } from './definitions/definition-error.ts'
export { createRegistry, type RegistryOptions } from './definitions/load/registry.ts'
export { discover, type DiscoveredRegistry } from './definitions/load/discover.ts'
export { catalog } from './definitions/load/catalog.ts'
export type { Lease, ThreadHead, ThreadLifecycle } from './store/head.ts'
export type { Blob, Commit, CommitResult, ThreadChange } from './store/commit.ts'
export type {
  Claim,
  ClaimOptions,
  HeldThread,
  Store,
  StoreRow,
  StoreTotals,
} from './store/store.ts'
export type { ListPlace, ThreadQuery } from './store/thread-query.ts'
export type { WaitingKind, WaitingPlace, WaitingQuery, WaitingRow } from './store/waiting-query.ts'
export { StoreError, isStoreError, type StoreErrorCode } from './store/store-error.ts'
export { removalsOf } from './store/store.ts'
export { planCommit, planErase, type CommitPlan, type StoreView } from './store/plan-commit.ts'
export { storedText } from './store/stored-text.ts'
export { claimedHead } from './store/claimed-head.ts'
export { completeHead } from './store/new-head.ts'
export { isStorable } from './store/storable-text.ts'
export { pageOf, placeOf, searchText } from './store/select-threads.ts'
export { headColumns, headOfRow, type HeadColumns, type HeadValue } from './store/head-row.ts'
export { QuestionLog, waitingLimit, type WaitingChange } from './store/waiting-rows.ts'
export { memoryStore } from './store/memory-store.ts'
export { sqliteStore, type SqliteStore } from './store/sqlite/sqlite-store.ts'
export { loadSqliteStore } from './store/sqlite/sqlite-import.ts'
export { readSqliteStore, verifyStore } from './store/sqlite/sqlite-verify.ts'
export { findStranded, type StrandedReport } from './stranded.ts'
export type { Dispatcher, Drain, DrainEnd, NodeLink, NodeNotice } from './dispatch/dispatcher.ts'
export { inProcessDispatcher } from './dispatch/in-process-dispatcher.ts'
export { systemTimers, type Timers } from './dispatch/dispatcher.ts'
export type { SecretKeyOptions } from './secrets/open-vault.ts'
export type { RuntimeLimits } from './contract/limits.ts'
export type { RuntimeTelemetry } from './telemetry/telemetry.ts'
export { lineLogger, type RuntimeLogger } from './telemetry/logger.ts'
export {
  memoryGovernanceKeys,
  openGovernanceKeys,
  type GovernanceKeys,
} from './governance/governance-keys.ts'
export { verifyAudit } from './governance/audit-export.ts'
