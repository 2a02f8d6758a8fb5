export { toOtelMessages } from './otel/to-otel.ts'
export type * from './otel/types.ts'
