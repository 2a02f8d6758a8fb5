import type { Breaks } from './break.ts'

/** How each row of Standard Agents can be violated. See `break.ts`. */
export const breaks: Breaks = {}
