export type { Middleware, MiddlewareContext } from '../contract/agent-types.ts'
export { logging, type AgentLogDetails, type AgentLoggingOptions } from './logging.ts'
export {
  estimateTokens,
  pruneToolOutputs,
  slidingWindow,
  summarize,
  type EstimateTokens,
  type PruneToolOutputsOptions,
  type SlidingWindowOptions,
  type Summarizer,
  type SummarizeOptions,
} from './context-window.ts'
export { anyOf, maxCost, maxSteps, maxTime, maxTokens, type StopCondition } from './budget.ts'
export { tracing, type TracingOptions } from './tracing.ts'
