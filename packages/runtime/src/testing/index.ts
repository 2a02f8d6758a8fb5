export { describeDispatcher } from './dispatcher-contract.ts'
export { describeStore } from './store-contract.ts'
export { manualTimers, type ManualTimers } from './simulation.ts'
