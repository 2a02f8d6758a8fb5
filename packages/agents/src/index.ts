export { agent } from './agent.ts'
export { isSubagent, subagent, type SubagentDefinition } from './subagent.ts'
export { AgentState, type AgentStateOptions } from './state/state.ts'
export {
  ThreadNode,
  ThreadTree,
  type ThreadNodeInit,
  type ThreadNodeJSON,
  type ThreadTreeJSON,
  type ThreadTreeOptions,
} from './state/thread-tree.ts'
export type {
  AgentStateJSON,
  Answer,
  Answers,
  DeferredCall,
  Interrupt,
  PlanStep,
  PlanStepStatus,
  SubagentExecutionTrace,
  Suspension,
  ToolExecutionTrace,
} from './state/state-types.ts'
export type * from './contract/agent-types.ts'
export {
  AgentStopReason,
  type AgentStreamEvent,
  type SubagentEnd,
  type SubagentEvent,
  type SubagentInner,
  type SubagentStart,
  type UAPEvent,
  type UAPEventData,
  type UAPEventType,
} from './contract/event.ts'
export type { CheckpointMetadata, CheckpointStore } from './contract/checkpoint-store.ts'
