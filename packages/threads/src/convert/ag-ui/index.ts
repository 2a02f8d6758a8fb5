export { toAgUiEvents } from './to-events.ts'
export { fromAgUiEvents } from './from-events.ts'
export type { ImportOptions } from '../bridge/build.ts'
export type { AgUiEvent } from './types.ts'
