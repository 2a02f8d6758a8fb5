export { scripted, type ScriptedModel, type ScriptedOptions } from './scripted.ts'
export {
  calls,
  cuts,
  emits,
  fails,
  reasons,
  says,
  stops,
  waits,
  type ScriptFunction,
  type ScriptPart,
  type ScriptStep,
} from './script.ts'
export {
  checkTranscript,
  transcriptRules,
  type CheckOptions,
  type TranscriptIssue,
} from './transcript/check-transcript.ts'
export { type ChunkOptions } from './vendor-server/faults.ts'
export { type Fault } from './vendor-server/faults.ts'
export {
  startVendorServer,
  type RunningVendorServer,
} from './vendor-server/start-vendor-server-node.ts'
export { type VendorRequest } from './vendor-server/vendor-request.ts'
export {
  vendorServer,
  type VendorServer,
  type VendorServerOptions,
} from './vendor-server/vendor-server.ts'
export { fileStore } from './record-replay/file-store-node.ts'
export {
  recordFetch,
  type RecordingFetch,
  type RecordOptions,
} from './record-replay/record-replay.ts'
export {
  memoryStore,
  RecordingError,
  type Exchange,
  type RecordedBody,
  type RecordedChunk,
  type RecordedPart,
  type RecordedRequest,
  type RecordedResponse,
  type Recording,
  type RecordingStore,
} from './record-replay/recording.ts'
export { replayFetch, type ReplayOptions } from './record-replay/record-replay.ts'
