/**
 * What tests get when they import `fast-check`: the same seed in every run, so that a run can be repeated.
 * `npm run test:deep` explores with a seed of its own each time, and so does SKEIN_SEED=random; a failing
 * property prints its seed, and SKEIN_SEED=<number> takes it.
 */
import { createRequire } from 'node:module'
import type FastCheck from 'fast-check'

// Vitest gives this module to everybody who imports `fast-check`, so the library itself is required.
const library = createRequire(import.meta.url)('fast-check') as {
  readonly default: typeof FastCheck
}
const fc: typeof FastCheck = library.default
const given = process.env['SKEIN_SEED'] ?? (process.env['SKEIN_DEEP'] ? 'random' : '20261115')
if (given !== 'random') fc.configureGlobal({ seed: Number(given) })

export default fc
