export {
  calls,
  cuts,
  emits,
  fails,
  reasons,
  says,
  scripted,
  stops,
  waits,
  type ScriptedModel,
  type ScriptFunction,
  type ScriptPart,
  type ScriptStep,
} from './scripted.ts'
export { checkTranscript, transcriptRules } from './transcript/check-transcript.ts'
export type { TranscriptIssue } from './transcript/report.ts'
export { type Fault } from './vendor-server/faults.ts'
export {
  startVendorServer,
  type RunningVendorServer,
} from './vendor-server/start-vendor-server-node.ts'

export { vendorServer, type VendorServer } from './vendor-server/vendor-server.ts'
export { fileStore } from './record-replay/file-store-node.ts'
export { recordFetch, type RecordingFetch } from './record-replay/record.ts'
export { replayFetch } from './record-replay/replay.ts'
export {
  memoryRecordings,
  RecordingError,
  type Exchange,
  type Recording,
  type RecordingStore,
} from './record-replay/recording.ts'
