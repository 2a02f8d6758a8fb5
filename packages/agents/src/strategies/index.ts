export type {
  ExecutionContext,
  ExecutionResult,
  ExecutionStrategy,
  StepEffect,
} from '../execution.ts'
