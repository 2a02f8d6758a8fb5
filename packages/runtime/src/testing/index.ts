export type { TestFunctions } from './contract.ts'
export { describeDispatcher, type DispatcherContract } from './dispatcher-contract.ts'
export { manualTimers, type ManualTimers } from './manual-timers.ts'
export { describeStore, type StoreContract } from './store-contract.ts'
