export type {
  RecordedThread,
  RecordedHead,
  ThreadRequest,
  RequestContent,
  RecordedAnswer,
  RecordedUsage,
  RecordedCall,
  RecordedDecision,
  RecordedInput,
} from './recorded/recorded-thread.ts'
export type {
  RunFacts,
  FactMessage,
  FactCall,
  FactGate,
  FactEvidence,
} from './recorded/run-facts.ts'
export type { PlayBackReport, PlayBackDifference } from './play-back/play-back-report.ts'
export type {
  ReplayReport,
  ReplayEnd,
  FirstDifference,
  DifferenceKind,
} from './replay/replay-report.ts'
export type { ListedEffect } from './run-again/listed-effect.ts'
export type { DeployReport, DeployGroup, CheckedThread } from './deploy-check/deploy-report.ts'
export type {
  RunDiff,
  StepPair,
  RunStep,
  StepChange,
  TextPiece,
  RunDeltas,
  CountDelta,
} from './diff/run-diff.ts'
export {
  readRecording,
  readExport,
  recordedThread,
  type RecordedSource,
} from './recorded/read-recording.ts'
export { factsOf } from './recorded/facts-of.ts'
export { playBack, type PlayBackOptions } from './play-back/play-back.ts'
export { replay, type ReplaySettings, type PaidAnswer, type PaidAnswers } from './replay/replay.ts'
export { type AgentChange } from './replay/changed-agent.ts'
export { deployCheck, type DeployCheckOptions } from './deploy-check/deploy-check.ts'
export { deployMarkdown, deployText } from './deploy-check/report-text.ts'
export { diffRuns, stepsOf } from './diff/diff-runs.ts'
export { diffMarkdown, diffText } from './diff/diff-text.ts'
export {
  listEffects,
  runAgain,
  type RunAgainOptions,
  type RunAgainReport,
} from './run-again/run-again.ts'
