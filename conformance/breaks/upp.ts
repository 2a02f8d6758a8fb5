import type { Breaks } from './break.ts'

/** How each row of this specification can be violated. See `break.ts`. */
export const breaks: Breaks = {}
