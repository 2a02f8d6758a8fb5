// Runs simulated lives of the runtime: `--seed 123` prints one whole, `--from 1 --count 500` counts.
import { Coverage } from '../packages/runtime/test/simulation/coverage.ts'
import { plants } from '../packages/runtime/test/simulation/plants.ts'
import { runSeed } from '../packages/runtime/test/simulation/run-seed.ts'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    plant: { type: 'string' },
    from: { type: 'string', default: '1' },
    count: { type: 'string', default: '200' },
  },
})
const plant = values.plant === undefined ? undefined : plants[values.plant]
if (values.seed !== undefined) {
  const report = await runSeed(Number(values.seed), { plant })
  for (const { step, time, lane, what, outcome, commit } of report.trace) {
    const threads = commit?.threads.map(
      ({ id, append = [] }) => `${id.slice(-4)}[${append.map(({ type }) => type).join(' ')}]`,
    )
    console.log(
      `${step} ${new Date(time).toISOString().slice(11, 23)} ${lane}: ${what} ${outcome ?? ''} ${threads?.join(' ') ?? ''}`,
    )
  }
  console.log(report.violations.join('\n') || 'nothing is wrong')
  process.exit(report.violations.length > 0 ? 1 : 0)
}
const coverage = new Coverage()
const start = performance.now()
const cpuAtStart = process.cpuUsage()
let failed = 0
let commits = 0
const from = Number(values.from)
for (let seed = from; seed < from + Number(values.count); seed++) {
  if (process.env['SHOW']) console.error(seed)
  const report = await runSeed(seed, { plant, coverage })
  commits += report.commits
  if (report.violations.length === 0) continue
  failed++
  if (plant && process.env['FIRST']) {
    console.log(`found at ${seed}`)
  }
  console.log(`seed ${seed}: ${report.violations[0]!.slice(0, 600)}`)
}
const seconds = (performance.now() - start) / 1000
const cpu = process.cpuUsage(cpuAtStart)
const cpuSeconds = (cpu.user + cpu.system) / 1e6
console.log(coverage.table())
console.log(
  `${failed} failed; ${(Number(values.count) / seconds).toFixed(1)} seeds/s, ${(Number(values.count) / cpuSeconds).toFixed(1)} per second of processor time, ${commits} commits`,
)
