export type { TestFunctions } from '@skein/base'
export { describeDispatcher, type DispatcherContract } from './dispatcher-contract.ts'
export { describeStore, type StoreContract } from './store-contract.ts'
export { manualTimers, type ManualTimers } from './simulation.ts'
export {
  crashStore,
  type CommitOutcome,
  type CrashMoment,
  type CrashStoreOptions,
} from './simulation.ts'
export {
  NotNowError,
  seededScheduler,
  type Lane,
  type SeededScheduler,
  type SeededSchedulerOptions,
} from './simulation.ts'
