export {
  ResumableStreams,
  type ResumableSource,
  type NumberedEvent,
  type ResumeOptions,
  type ResumableOptions,
  type RunningStream,
} from './resumable-streams.ts'
export {
  MemoryEventLog,
  type EventLog,
  type LogEntry,
  type LogPage,
  type MemoryEventLogOptions,
} from './event-log.ts'
export { readSse, type SseOptions } from './sse.ts'
export { StreamError, StreamErrorCode } from './event-log.ts'
