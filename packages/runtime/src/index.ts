export { createRuntime, type EmbeddedRuntime, type RuntimeOptions } from './runtime.ts'
export type {
  Runtime,
  SubscribeOptions,
  NumberedEvent,
  CreateThread,
  SendMessage,
  Sent,
  SessionResult,
  WaitingItem,
  Inbox,
  FoundEffect,
  ModelLog,
  CostReport,
  Threads,
  ThreadInfo,
  CostUsd,
  ChildInfo,
  AuditExport,
  ThreadFiles,
  ThreadValues,
  ThreadEnv,
  ThreadVariables,
  ThreadEffects,
} from './contract/runtime-api.ts'
export type * from './contract/thread-state.ts'
export type { ModelRequested, RuntimeEvent, StoredEvent } from './contract/event.ts'
export { EVENT_VERSION } from './contract/event.ts'
export { FOUND_EFFECTS } from './contract/runtime-api.ts'
export { RuntimeError, type RuntimeErrorCode } from './contract/error.ts'
export {
  asSubagent,
  defineAgent,
  defineEffect,
  defineEndpoint,
  defineHook,
  defineModel,
  definePrompt,
  type EffectOptions,
  type EndpointHandler,
} from './definitions/define.ts'
export {
  defineTool,
  toolFrom,
  type NoArguments,
  type ToolFromOptions,
  type ToolOptions,
} from './definitions/define-tool.ts'
export { inWorker, type InWorkerOptions, type WorkerToolContext } from './definitions/in-worker.ts'
export { DefinitionError } from './definitions/resolved.ts'
export type {
  Ref,
  AgentDefinition,
  AgentTaskClass,
  Budget,
  SideConfig,
  SessionToolBinding,
  PromptDefinition,
  ReasoningOptions,
  CompactionOptions,
  VariableDefinition,
  PromptTool,
  SubagentToolConfig,
  ImmediateOptions,
  ResumableOptions,
  ModelDefinition,
  ToolGovernance,
  AnyTool,
  ToolDefinition,
  RuntimeToolContext,
  HookDefinition,
  EffectContext,
  EffectDefinition,
  EndpointDefinition,
} from './definitions/types.ts'
export type { HookToolCall, HookToolResult, HookName } from './definitions/hooks.ts'
export type {
  ResolvedAgent,
  ResolvedSide,
  ResolvedTool,
  Registry,
  Problem,
} from './definitions/resolved.ts'
export { createRegistry, type RegistryOptions } from './definitions/load/registry.ts'
export type { PriceSource } from './definitions/load/prices.ts'
export {
  discover,
  type DiscoveredRegistry,
  type DiscoverOptions,
} from './definitions/load/discover.ts'
export { catalogue, type CatalogueEntry } from './definitions/load/catalogue.ts'
export type {
  ThreadLifecycle,
  ThreadHead,
  NewThread,
  TreeUsage,
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
  StoreTotals,
  StoreErrorCode,
} from './store/store.ts'
export { StoreError, isStoreError } from './store/store.ts'
export { memoryStore, type MemoryStoreOptions } from './store/memory-store.ts'
export { sqliteStore, type SqliteStore, type SqliteStoreOptions } from './store/sqlite-store.ts'
export { verifyStore, type StoreReport } from './store/sqlite-verify.ts'
export type { Dispatcher, Drain, DrainEnd } from './dispatch/dispatcher.ts'
export {
  inProcessDispatcher,
  type InProcessDispatcherOptions,
} from './dispatch/in-process-dispatcher.ts'
export { systemTimers, type Timers } from './dispatch/dispatcher.ts'
export type { SecretKeyOptions } from './secrets/vault.ts'
export type { RuntimeLimits } from './contract/context.ts'
export type { OpenTelemetryApi, RuntimeTelemetry } from './telemetry/telemetry.ts'
export { lineLogger, type LineLoggerOptions, type RuntimeLogger } from './telemetry/logger.ts'
export {
  memoryGovernanceKeys,
  openGovernanceKeys,
  type GovernanceKeys,
} from './governance/governance-keys.ts'
export { grantPolicy, type GrantPolicyOptions, type ToolGrant } from './governance/approval-desk.ts'
export { verifyAudit, type VerifyAuditOptions } from './governance/audit-export.ts'
