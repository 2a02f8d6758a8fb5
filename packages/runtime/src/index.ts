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
  ThreadChange,
  Commit,
  Blob,
  CommitResult,
  Claim,
  ThreadQuery,
  Store,
  StoreErrorCode,
} from './store/store.ts'
export { StoreError, isStoreError } from './store/store.ts'
export { memoryStore } from './store/memory-store.ts'
export { sqliteStore, type SqliteStore, type SqliteStoreOptions } from './store/sqlite-store.ts'
export type { Dispatcher, Drain } from './dispatch/dispatcher.ts'
export {
  inProcessDispatcher,
  type InProcessDispatcherOptions,
} from './dispatch/in-process-dispatcher.ts'
export { systemTimers, type Timers } from './dispatch/dispatcher.ts'
export type { RuntimeLimits } from './contract/context.ts'
export {
  memoryGovernanceKeys,
  openGovernanceKeys,
  type GovernanceKeys,
} from './governance/governance-keys.ts'
export { grantPolicy, type GrantPolicyOptions, type ToolGrant } from './governance/approval-desk.ts'
export { verifyAudit, type VerifyAuditOptions } from './governance/audit-export.ts'
