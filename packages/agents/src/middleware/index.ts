export type { Middleware, MiddlewareContext, MiddlewareMetadata } from '../middleware.ts'
export { logging, type LogDetails, type LoggingOptions, type LogLevel } from './logging.ts'
export { pruneToolOutputs, type PruneToolOutputsOptions } from './prune-tool-outputs.ts'
export { slidingWindow } from './sliding-window.ts'
export { summarize, type Summarizer, type SummarizeOptions } from './summarize.ts'
export type { EstimateTokens } from './estimate-tokens.ts'
export { anyOf, maxCost, maxSteps, maxTime, maxTokens, type StopCondition } from './budget.ts'
export {
  tracing,
  type Span,
  type SpanAttributes,
  type SpanOptions,
  type Tracer,
  type TracingOptions,
} from './tracing.ts'
