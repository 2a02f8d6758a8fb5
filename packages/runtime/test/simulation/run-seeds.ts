import { Coverage } from './coverage.ts'
import { worldBugs } from './laws-world.ts'
import { plants } from './plants.ts'
import { runSeed, type SeedReport } from './run-seed.ts'

/** Runs seeds until one fails; throws what a person needs to see it again. */
export async function runSeeds(from: number, count: number, coverage: Coverage): Promise<void> {
  for (let seed = from; seed < from + count; seed++) {
    const report = await runSeed(seed, { coverage })
    if (report.violations.length > 0) throw new Error(describeFailure(report))
  }
}

/** The seed at which a planted bug is found, by its own law if it has one; undefined when it is not. */
export async function findPlant(
  name: string,
  { from = 1, within }: { readonly from?: number; readonly within: number },
): Promise<{ readonly seeds: number; readonly violation: string } | undefined> {
  for (let seed = from; seed < from + within; seed++) {
    const { violations } = await runSeed(seed, { plant: plants[name] })
    const finds = worldBugs[name]?.finds
    const violation = violations.find((one) => finds?.test(one) ?? true)
    if (violation !== undefined) return { seeds: seed - from + 1, violation }
  }
  return undefined
}

/** What a person needs to see a failure again. */
export function describeFailure(
  { seed, violations, trace }: SeedReport,
  flags: string = '',
): string {
  const last = trace.slice(-30).map(describeLine)
  return [
    `Seed ${seed} breaks a promise:`,
    ...violations.slice(0, 5).map((violation) => `- ${violation}`),
    `Replay: node --conditions=@skein/source scripts/simulate.ts --seed ${seed}${flags}`,
    'The last commits:',
    ...last,
  ].join('\n')
}

/** One line of a trace. */
export function describeLine({
  step,
  time,
  lane,
  what,
  outcome,
  commit,
}: SeedReport['trace'][number]): string {
  const threads = commit?.threads.map(
    ({ id, append = [] }) => `${id.slice(-4)}[${append.map(({ type }) => type).join(' ')}]`,
  )
  const at = new Date(time).toISOString().slice(0, 23)
  return [step, at, `${lane}:`, what, outcome, ...(threads ?? [])]
    .filter((part) => part !== undefined)
    .join(' ')
}
