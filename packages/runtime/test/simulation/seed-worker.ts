// Runs a share of the seeds, or looks for planted bugs, in a thread of its own.
import { parentPort, workerData } from 'node:worker_threads'
import { Coverage } from './coverage.ts'
import { findPlant, runSeeds } from './run-seeds.ts'

export type WorkerTask =
  | { readonly from: number; readonly count: number }
  | { readonly plants: readonly string[]; readonly within: number }

export interface WorkerAnswer {
  readonly coverage?: ReturnType<Coverage['toJSON']>
  readonly found?: Readonly<Record<string, Awaited<ReturnType<typeof findPlant>>>>
  readonly failure?: string
}

const task = workerData as WorkerTask
try {
  parentPort?.postMessage('plants' in task ? await lookForPlants(task) : await takeShare(task))
} catch (error) {
  const failure = error instanceof Error ? error.message : String(error)
  parentPort?.postMessage({ failure } satisfies WorkerAnswer)
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
