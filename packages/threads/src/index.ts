export type * from './types.ts'
export type { Converted, Issue, Loss, Severity } from './issue.ts'
export { InvalidThreadError, ThreadError, ThreadLimitError, joinPointer } from './issue.ts'
