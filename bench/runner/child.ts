/** The process of one contender: loads the bench, warms up, repeats, and reports to the runner. */
import { createHash } from 'node:crypto'
import { pathToFileURL } from 'node:url'
import { Measured } from './bench.ts'
import type { Bench } from './bench.ts'

/** What a process reports. */
export interface Samples {
  readonly values: readonly number[]
  /** Hash of the last output. */
  readonly output: string
}

const [file = '', name = '', warmups = '0', repetitions = '1'] = process.argv.slice(2)
const { default: bench } = (await import(pathToFileURL(file).href)) as { default: Bench }
const contender = bench.contenders[name]
if (contender === undefined) throw new Error(`${file} has no contender "${name}".`)

const timed = await contender.prepare()
const values: number[] = []
let output: unknown
for (let round = -Number(warmups); round < Number(repetitions); round++) {
  const cpu = process.cpuUsage()
  const start = performance.now()
  const result = await timed()
  const wallMs = performance.now() - start
  const { user, system } = process.cpuUsage(cpu)
  output = result instanceof Measured ? result.output : result
  if (round >= 0) values.push(sample(result, { wallMs, cpuMs: (user + system) / 1000 }))
}
const text = output instanceof Uint8Array ? output : (JSON.stringify(output) ?? 'undefined')
const samples: Samples = { values, output: createHash('sha256').update(text).digest('hex') }
process.send?.(samples, () => process.exit(0))

function sample(result: unknown, times: { wallMs: number; cpuMs: number }): number {
  if (bench.measure !== 'returned') return bench.measure === 'cpu' ? times.cpuMs : times.wallMs
  if (result instanceof Measured) return result.value
  throw new Error(`${file}: "${name}" must answer with measured(value).`)
}
