export { toUppMessages } from './upp/to-upp.ts'
export { fromUppMessages } from './upp/from-upp.ts'
export type { ImportOptions } from './bridge-build.ts'
export type * from './upp/types.ts'
