import type { Breaks } from './break.ts'

/** How each row of UPP, from UPP-086 on can be violated. See `break.ts`. */
export const breaks: Breaks = {}
