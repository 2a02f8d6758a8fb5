export type * from './content.ts'
export { ContentBlockType } from './content.ts'
