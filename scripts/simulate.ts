// Simulated lives of the runtime. One seed, told whole:
//   node --conditions=@skein/source scripts/simulate.ts --seed 123 [--plant lost-fence]
// Many, counted:
//   node --conditions=@skein/source scripts/simulate.ts --from 1 --count 500
// With --postgres the store is a PostgreSQL server that is started for it.
import { parseArgs } from 'node:util'
import { startSimulatedPostgres } from '../packages/postgres/test/simulated-postgres.ts'
import { Coverage } from '../packages/runtime/test/simulation/coverage.ts'
import { plants, type Plant } from '../packages/runtime/test/simulation/plants.ts'
import { runSeed } from '../packages/runtime/test/simulation/run-seed.ts'
import { describeLine } from '../packages/runtime/test/simulation/run-seeds.ts'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    plant: { type: 'string' },
    from: { type: 'string', default: '1' },
    count: { type: 'string', default: '200' },
    postgres: { type: 'boolean', default: false },
  },
})
const plant = plantOf(values.plant)
const postgres = values.postgres ? await startSimulatedPostgres() : undefined
const open = postgres?.open
const isFine =
  values.seed === undefined
    ? await countSeeds(Number(values.from), Number(values.count))
    : await tellSeed(Number(values.seed))
await postgres?.stop()
process.exit(isFine ? 0 : 1)

function plantOf(name: string | undefined): Plant | undefined {
  if (name === undefined || plants[name]) return plants[name ?? '']
  console.error(`There is no planted bug "${name}". Known: ${Object.keys(plants).join(', ')}.`)
  return process.exit(2)
}

async function tellSeed(seed: number): Promise<boolean> {
  const { trace, violations } = await runSeed(seed, { plant, open })
  for (const line of trace) console.log(describeLine(line))
  console.log(violations.length > 0 ? violations.join('\n') : 'Every promise holds.')
  return violations.length === 0
}

async function countSeeds(from: number, count: number): Promise<boolean> {
  const coverage = new Coverage()
  const start = performance.now()
  const cpuAtStart = process.cpuUsage()
  let failed = 0
  let commits = 0
  for (let seed = from; seed < from + count; seed++) {
    const report = await runSeed(seed, { plant, coverage, open })
    commits += report.commits
    if (report.violations.length === 0) continue
    failed++
    console.log(`seed ${seed}: ${report.violations[0]!.slice(0, 600)}`)
  }
  const seconds = (performance.now() - start) / 1000
  const { user, system } = process.cpuUsage(cpuAtStart)
  const perSecond = (count / seconds).toFixed(1)
  const perProcessor = (count / ((user + system) / 1e6)).toFixed(1)
  console.log(coverage.table())
  console.log(
    `${failed} failed; ${perSecond} seeds/s, ${perProcessor} per second of processor time, ${commits} commits`,
  )
  return failed === 0
}
