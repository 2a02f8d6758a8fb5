export {
  ResumableStreams,
  type ResumableSource,
  type StreamedEvent,
  type RunningStream,
} from './resumable-streams.ts'
export { memoryEvents, type EventLog, type LogEntry, type LogPage } from './event-log.ts'
export { readSse } from './sse.ts'
export { StreamError, StreamErrorCode } from './event-log.ts'
