export { cacheMiddleware, type CacheStore } from './cache.ts'
export { memoryCache } from './cache.ts'
export { costMiddleware, tokenCost, type CostMiddleware } from './cost.ts'
export { findModel, type ModelCatalog, type ModelInfo, type ModelPrices } from './cost.ts'
export { telemetryMiddleware } from './telemetry.ts'
export { toolAttributes } from './telemetry-attributes.ts'
export type { Span, SpanAttributes, SpanOptions, Tracer } from './telemetry.ts'
export {
  loadThread,
  memoryTurns,
  persistenceMiddleware,
  type SavedTurn,
  type TurnStore,
} from './persistence.ts'
export { messageEvents } from '../turn/message-events.ts'
export {
  ResumableStreams,
  type ResumableSource,
  type StreamedEvent,
  type RunningStream,
} from '../resumable/resumable-streams.ts'
export { memoryEvents, type EventLog, type LogEntry, type LogPage } from '../resumable/event-log.ts'
export { readSse } from '../resumable/sse.ts'
export { StreamError, StreamErrorCode } from '../resumable/event-log.ts'
