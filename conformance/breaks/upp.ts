import type { Breaks } from './break.ts'

/** How each row of UPP, first half can be violated. See `break.ts`. */
export const breaks: Breaks = {}
