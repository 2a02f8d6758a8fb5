export { toAgUiEvents } from './to-events.ts'
export { fromAgUiEvents } from './from-events.ts'
export { AgUiStreamEncoder, toAgUiMessages } from './encode.ts'
export type { AgUiEvent, AgUiMessage, AgUiOutcome } from './types.ts'
