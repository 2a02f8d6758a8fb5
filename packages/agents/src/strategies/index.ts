export { loop, type LoopOptions } from './loop.ts'
export { react, type ReactOptions } from './react.ts'
export { plan, type PlanOptions } from './plan.ts'
export { step, type StepInput, type StepResult } from '../step/step.ts'
export type {
  ExecutionContext,
  ExecutionResult,
  ExecutionStrategy,
  StepEffect,
} from '../contract/agent-types.ts'
