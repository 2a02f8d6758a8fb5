export type {
  RecordedThread,
  RecordedHead,
  RecordedRequest,
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
  TextPart,
  RunDeltas,
  CountDelta,
} from './diff/run-diff.ts'
export { readThread, readExport, recordedThread, type RecordedSource } from './recorded/read-thread.ts'
export { factsOf } from './recorded/facts-of.ts'
export { playBack, type PlayBackOptions } from './play-back/play-back.ts'
