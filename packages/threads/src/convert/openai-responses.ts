export { toResponsesItems } from './openai-responses/to-items.ts'
export { fromResponsesItems } from './openai-responses/from-items.ts'
export type { ImportOptions } from './bridge-build.ts'
export type * from './openai-responses/types.ts'
