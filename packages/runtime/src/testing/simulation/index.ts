export {
  crashStore,
  type CommitOutcome,
  type CrashMoment,
  type CrashStoreOptions,
} from './crash-store.ts'
export {
  NotNowError,
  seededScheduler,
  type Lane,
  type LaneState,
  type SeededScheduler,
  type SeededSchedulerOptions,
} from './seeded-scheduler.ts'
