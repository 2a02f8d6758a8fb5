export { toAgUiEvents } from './ag-ui/to-events.ts'
export { fromAgUiEvents } from './ag-ui/from-events.ts'
export type { ImportOptions } from './bridge-build.ts'
export type * from './ag-ui/types.ts'
