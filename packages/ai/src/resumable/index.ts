export {
  ResumableStreams,
  type ResumableSource,
  type StreamedEvent,
  type ResumeOptions,
  type ResumableStreamOptions,
  type RunningStream,
} from './resumable-streams.ts'
export {
  memoryEvents,
  type EventLog,
  type LogEntry,
  type LogPage,
  type MemoryEventsOptions,
} from './event-log.ts'
export { readSse, type SseOptions } from './sse.ts'
export { StreamError, StreamErrorCode } from './event-log.ts'
