import { fork } from 'node:child_process'
import { loadavg } from 'node:os'
import { join } from 'node:path'
import type { Bench } from './bench.ts'
import type { Samples } from './child.ts'
import { summarise } from './statistics.ts'
import type { Summary } from './statistics.ts'

export interface ContenderResult extends Summary {
  readonly name: string
  /** Times the baseline's median; below 1 is less than the baseline needs. */
  readonly ratio: number
}

export interface BenchResult {
  readonly id: string
  readonly title: string
  readonly measure: string
  readonly unit: string
  readonly amount?: { readonly value: number; readonly unit: string }
  readonly baseline: string
  /** Processes that wanted a core while it ran, on average over the last minute; ours are among them. */
  readonly load?: number
  readonly contenders: readonly ContenderResult[]
}

export interface RunBenchOptions {
  /** Fewer repetitions, for a look; the numbers are not for publishing. */
  readonly quick: boolean
  readonly withPeers: boolean
  /** Asked after each round of processes; when it says true, the bench ends with the rounds it had. */
  readonly isOver?: () => boolean
}

/** Runs the contenders in turns, each time in a fresh process, and compares them with the baseline. */
export async function runBench(
  { id, file, bench }: { id: string; file: string; bench: Bench },
  { quick, withPeers, isOver = () => false }: RunBenchOptions,
): Promise<BenchResult> {
  const names = Object.entries(bench.contenders)
    .filter(([, { peers = [] }]) => withPeers || peers.length === 0)
    .map(([name]) => name)
  const samples = new Map<string, number[]>(names.map((name) => [name, []]))
  const outputs = new Map<string, string>()
  const processes = quick ? 1 : (bench.processes ?? 3)
  const warmups = quick ? 1 : (bench.warmups ?? 5)
  const repetitions = quick ? 3 : (bench.repetitions ?? 15)
  for (let round = 0; round < processes && (round === 0 || !isOver()); round++) {
    for (const name of names) {
      const { values, output } = await runProcess([
        file,
        name,
        String(warmups),
        String(repetitions),
      ])
      samples.get(name)?.push(...values)
      outputs.set(name, output)
    }
  }
  assertSameOutputs(id, bench, outputs)
  const summaries = new Map([...samples].map(([name, values]) => [name, summarise(values)]))
  const base = summaries.get(bench.baseline)
  if (base === undefined) throw new Error(`${id}: the baseline "${bench.baseline}" did not run.`)
  return {
    id,
    title: bench.title,
    measure: bench.measure ?? 'wall',
    unit: bench.measure === 'returned' ? (bench.unit ?? 'ms') : 'ms',
    ...(bench.amount === undefined ? {} : { amount: bench.amount }),
    baseline: bench.baseline,
    load: loadavg()[0] ?? 0,
    contenders: [...summaries].map(([name, summary]) => ({
      name,
      ratio: summary.median / base.median,
      ...summary,
    })),
  }
}

function runProcess(args: readonly string[]): Promise<Samples> {
  return new Promise((resolve, reject) => {
    const child = fork(join(import.meta.dirname, 'child.ts'), args, {
      execArgv: ['--conditions=@skein/source', '--no-warnings'],
    })
    let samples: Samples | undefined
    child.on('message', (message) => (samples = message as Samples))
    child.on('error', reject)
    child.on('close', (code) => {
      if (samples !== undefined) resolve(samples)
      else reject(new Error(`${args.join(' ')} ended with ${code} and no result.`))
    })
  })
}

/** A contender that answers something else is not faster, it is wrong. */
function assertSameOutputs(id: string, bench: Bench, outputs: ReadonlyMap<string, string>): void {
  const comparable = [...outputs].filter(([name]) => bench.contenders[name]?.sameOutput !== false)
  const [first, ...others] = comparable
  const different = others.filter(([, output]) => output !== first?.[1]).map(([name]) => name)
  if (different.length > 0) {
    throw new Error(`${id}: ${different.join(', ')} and ${first?.[0]} give different outputs.`)
  }
}
