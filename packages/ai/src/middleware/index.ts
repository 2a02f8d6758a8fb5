export { cacheMiddleware, type CacheStore } from './cache.ts'
export { memoryCache } from './cache.ts'
export { costMiddleware, tokenCost } from './cost.ts'
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
export * from '../routing/index.ts'
export * from '../resumable/index.ts'
