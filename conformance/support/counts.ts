/** How often a test does the same thing with other values, in each of the three commands. */
export interface Counts {
  /** In `npm test`. */
  readonly fast: number
  /** In the group `long` of `npm run test:all`. */
  readonly all: number
  /** In `npm run test:deep`, which sets SKEIN_DEEP: what the specification or the design asks for. */
  readonly deep: number
}

/**
 * Which count a run uses. A file whose counts differ between `npm test` and the group `long` has a file
 * `<name>.long.test.ts` next to it, which imports it; that group sets SKEIN_LONG.
 */
export function countOf({ fast, all, deep }: Counts): number {
  if (process.env['SKEIN_DEEP'] !== undefined) return deep
  return process.env['SKEIN_LONG'] === undefined ? fast : all
}
