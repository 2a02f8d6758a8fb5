export { loggingMiddleware, LogLevel, type Logger, type LoggingOptions } from './logging.ts'
export {
  parsedObjectMiddleware,
  type ParsedEventDelta,
  type ParsedObjectOptions,
  type ParsedStreamEvent,
} from './parsed-object.ts'
export { cacheMiddleware, type CacheOptions, type CacheStore } from './cache.ts'
export { memoryCache, type MemoryCacheOptions } from './cache.ts'
export { costMiddleware, tokenCost, type CostOptions } from './cost.ts'
export { findModel, type ModelCatalog, type ModelInfo, type ModelPrices } from './cost.ts'
export { telemetryMiddleware, type TelemetryOptions } from './telemetry.ts'
export { toolAttributes } from './telemetry-attributes.ts'
export type { Span, SpanAttributes, SpanOptions, Tracer } from './telemetry.ts'
export {
  loadThread,
  memoryTurns,
  persistenceMiddleware,
  type LoadThreadOptions,
  type PersistenceOptions,
  type SavedTurn,
  type TurnStore,
} from './persistence.ts'
export * from '../routing/index.ts'
export * from '../resumable/index.ts'
