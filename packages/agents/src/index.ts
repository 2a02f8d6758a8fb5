export type {
  Agent,
  AgentInput,
  AgentOptions,
  AgentRun,
  AgentStreamResult,
  GenerateResult,
  ModellessAgent,
  ModellessOptions,
  RunOptions,
} from './agent.ts'
export { agent, AgentStopReason } from './agent.ts'
export { subagent, type SubagentDefinition } from './subagent.ts'
export { AgentState } from './state.ts'
export type { AgentStateJSON, AgentStateOptions } from './state.ts'
export { ThreadNode, type ThreadNodeInit, type ThreadNodeJSON } from './thread-node.ts'
export { ThreadTree, type ThreadTreeJSON, type ThreadTreeOptions } from './thread-tree.ts'
export type { PlanStep, PlanStepStatus } from './plan-step.ts'
export type { SubagentExecutionTrace, ToolExecutionTrace } from './subagent-trace.ts'
export type * from './event.ts'
export type * from './interrupt.ts'
export type * from './execution.ts'
export type * from './strategy.ts'
export type * from './tool-context.ts'
export type * from './middleware.ts'
export type * from './checkpoint.ts'
