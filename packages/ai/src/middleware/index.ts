export {
  loggingMiddleware,
  LogLevel,
  type LogDetails,
  type Logger,
  type LoggingOptions,
} from './logging.ts'
export {
  parsedObjectMiddleware,
  type ParsedEventDelta,
  type ParsedObjectOptions,
  type ParsedStreamEvent,
} from './parsed-object.ts'
