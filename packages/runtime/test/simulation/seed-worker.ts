// Runs a share of the seeds, or looks for planted bugs, in a thread of its own.
import { parentPort, workerData } from 'node:worker_threads'
import { Coverage } from './coverage.ts'
import { runSeed } from './run-seed.ts'
import { findPlant, runSeeds } from './run-seeds.ts'

export type WorkerTask =
  | { readonly from: number; readonly count: number }
  | { readonly plants: readonly string[]; readonly within: number }
  | { readonly seeds: readonly number[] }

export interface WorkerAnswer {
  readonly coverage?: ReturnType<Coverage['toJSON']>
  readonly found?: Readonly<Record<string, Awaited<ReturnType<typeof findPlant>>>>
  /** What happened in each run of `seeds`, in order. */
  readonly traces?: readonly (readonly string[])[]
  readonly failure?: string
}

const task = workerData as WorkerTask
try {
  parentPort?.postMessage(await perform(task))
} catch (error) {
  const failure = error instanceof Error ? error.message : String(error)
  parentPort?.postMessage({ failure } satisfies WorkerAnswer)
}

function perform(work: WorkerTask): Promise<WorkerAnswer> {
  if ('plants' in work) return lookForPlants(work)
  return 'seeds' in work ? traceSeeds(work) : takeShare(work)
}

async function traceSeeds({
  seeds,
}: Extract<WorkerTask, { seeds: unknown }>): Promise<WorkerAnswer> {
  const traces: string[][] = []
  for (const seed of seeds) {
    const { trace } = await runSeed(seed)
    traces.push(trace.map(({ step, lane, what }) => `${step} ${lane} ${what}`))
  }
  return { traces }
}

async function takeShare({
  from,
  count,
}: Extract<WorkerTask, { count: number }>): Promise<WorkerAnswer> {
  const coverage = new Coverage()
  await runSeeds(from, count, coverage)
  return { coverage: coverage.toJSON() }
}

async function lookForPlants({
  plants,
  within,
}: Extract<WorkerTask, { within: number }>): Promise<WorkerAnswer> {
  const found: Record<string, Awaited<ReturnType<typeof findPlant>>> = {}
  for (const name of plants) found[name] = await findPlant(name, { within })
  return { found }
}
