export type {
  Thread,
  AgentConfig,
  Turn,
  UserTurn,
  AgentTurn,
  ThreadMessage,
  SystemMessage,
  SystemEventType,
  Usage,
  FinishReason,
  Attachment,
} from './document/thread.ts'
export type {
  MessagePart,
  TextPart,
  ThinkingPart,
  ToolCallPart,
  ToolReturnPart,
  ContentRef,
  RetryPromptPart,
  ValidationError,
  FilePart,
  UserPromptPart,
  UserContent,
  MultiModalContent,
  ImageUrl,
  AudioUrl,
  VideoUrl,
  DocumentUrl,
  BinaryContent,
} from './document/part.ts'
export type { Converted, Loss } from './issue.ts'
export { InvalidThreadError, ThreadError, ThreadLimitError } from './issue.ts'
export { IssueCode } from './document/issue-code.ts'
export { validateThread, validateTurns, type Validation } from './document/validate.ts'
export {
  UnsupportedVersionError,
  parseFragment,
  parseThread,
  safeParseThread,
  stringifyThread,
  type ThreadReading,
} from './document/thread-text.ts'
export { parseJson } from './json/json-parse.ts'
export { keepJsonText, stringifyJson } from './json/json-stringify.ts'
export {
  toModelMessages,
  unescapePrefixes,
  withSystemPrompt,
  type ModelMessage,
} from './document/view.ts'
export { pendingToolCalls, toolCalls, type ToolCallRecord } from './document/tool-calls.ts'
export type {
  LoggedOutcome,
  ThreadCreated,
  AgentRegistered,
  MessageAdded,
  TurnStart,
  StepStart,
  TextDelta,
  ReasoningDelta,
  ToolCallDelta,
  ToolExecutionStart,
  ToolExecutionEnd,
  InterruptRecord,
  InterruptAnswer,
  InterruptOpened,
  InterruptAnswered,
  SubagentCreated,
  DeliveryStatus,
  DeliveryChanged,
  GateDecided,
  LateResult,
  ThreadStatus,
  UsageRecorded,
  CustomEvent,
  ThreadEvent,
  UnknownThreadEvent,
} from './events/event.ts'
export { isThreadEvent } from './events/event.ts'
export type {
  FoldedThread,
  TurnState,
  AgentTurnState,
  DraftState,
  FileState,
} from './events/folded-thread.ts'
export { emptyFoldedThread } from './events/folded-thread.ts'
export { ThreadFold, foldThread, reduceThread } from './events/reduce-thread.ts'
export { diffThreads, type Difference, type ThreadDiff } from './document/diff.ts'
export { forkThread } from './document/fork.ts'
export { redactThread, type Redaction } from './document/redact.ts'
export { threadStats, type ThreadStats, type UsageStats } from './document/stats.ts'
