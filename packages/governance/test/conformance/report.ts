import { UAICP_VERSION } from '../../src/index.ts'
import { baselineChecks, type BaselineCheck } from './baseline.ts'
import { behaviours, type Behaviour } from './behaviour.ts'

/** What this package says about itself, for machines. Made anew by every run of the tests. */
export interface ConformanceReport {
  readonly implementation: '@skein/governance'
  readonly uaicp_version: string
  readonly conformant: boolean
  readonly baseline: readonly BaselineCheck[]
  readonly behaviour: readonly Behaviour[]
}

export async function conformanceReport(): Promise<ConformanceReport> {
  const baseline = await baselineChecks()
  const behaviour = await behaviours()
  return {
    implementation: '@skein/governance',
    uaicp_version: UAICP_VERSION,
    conformant: [...baseline, ...behaviour].every(({ result }) => result !== 'fail'),
    baseline,
    behaviour,
  }
}

// `node --conditions=@skein/source packages/governance/test/conformance/report.ts` prints it.
if (import.meta.main) console.log(JSON.stringify(await conformanceReport(), null, 2))
