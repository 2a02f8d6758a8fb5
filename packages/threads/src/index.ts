export type * from './types.ts'
export type { Converted, Issue, Loss, Severity } from './issue.ts'
export { InvalidThreadError, ThreadError, ThreadLimitError, joinPointer } from './issue.ts'
export { IssueCode, type Profile } from './issue-code.ts'
export { validateThread, validateTurns, type ValidateOptions, type Validation } from './validate.ts'
export {
  UnsupportedVersionError,
  parseFragment,
  parseThread,
  safeParseThread,
  stringifyThread,
  type ParseOptions,
  type ThreadLimits,
  type ThreadReading,
} from './thread-text.ts'
export { parseJson, type JsonLimits, type JsonReading } from './json-parse.ts'
export { stringifyJson } from './json-stringify.ts'
export { keepJsonText, numberText } from './json-notes.ts'
export {
  toModelMessages,
  withSystemPrompt,
  type ModelMessage,
  type ViewOptions,
  type ViewPolicy,
} from './view.ts'
export { unescapePrefixes } from './view-label.ts'
export {
  pendingToolCalls,
  toolCalls,
  type ToolCallRecord,
  type ToolCallState,
} from './tool-calls.ts'
export { sumUsage } from './usage.ts'
export type * from './event.ts'
export { isEphemeralEvent, isThreadEvent } from './event.ts'
export type * from './reduce-thread-state.ts'
export { emptyThreadState } from './reduce-thread-state.ts'
export { ThreadFold, foldThread, reduceThread } from './reduce-thread.ts'
export { forkThread, type ForkOptions } from './fork.ts'
export { diffThreads, type Difference, type ThreadDiff } from './diff.ts'
export { redactThread, type RedactOptions, type Redaction } from './redact.ts'
export { threadStats, type ThreadStats, type UsageStats } from './stats.ts'
