export { logging, type AgentLogDetails, type AgentLoggingOptions } from './logging.ts'
export {
  estimateTokens,
  pruneToolOutputs,
  slidingWindow,
  summarize,
  type Summarizer,
} from './context-window.ts'
export { anyOf, maxCost, maxSteps, maxTime, maxTokens, type StopCondition } from './budget.ts'
export { tracing } from './tracing.ts'
