export { toAnthropicMessages } from './anthropic/to-messages.ts'
export { fromAnthropicMessages } from './anthropic/from-messages.ts'
export type { ImportOptions } from './bridge-build.ts'
export type * from './anthropic/types.ts'
