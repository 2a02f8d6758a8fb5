export { agent } from './agent.ts'
export { subagent } from './subagent.ts'
export { isSubagent } from './step/run-tree.ts'
export { AgentState } from './state/state.ts'
export { ThreadNode, ThreadTree, type ThreadTreeJSON } from './state/thread-tree.ts'
export type {
  AgentStateJSON,
  Answer,
  Answers,
  DeferredCall,
  Interrupt,
  PlanStep,
  SubagentExecutionTrace,
  Suspension,
  ToolExecutionTrace,
} from './state/state-types.ts'
export type {
  AgentOptions,
  Agent,
  ModellessAgent,
  AgentInput,
  RunOptions,
  GenerateResult,
  AgentStreamResult,
  AgentRun,
  ExecutionStrategy,
  ExecutionResult,
  ExecutionContext,
  AgentStrategy,
  InferenceChanges,
  InferenceHook,
  InferenceRequest,
  Middleware,
  MiddlewareContext,
} from './contract/agent-types.ts'
export {
  AgentStopReason,
  type AgentContext,
  type AgentStreamEvent,
  type SubagentEvent,
  type UAPEvent,
  type UAPEventData,
  type UAPEventType,
} from './contract/event.ts'
