import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { WorkerAnswer, WorkerTask } from './seed-worker.ts'

/** Gives each task a thread. Rejects with the first failure. */
export function inWorkers(tasks: readonly WorkerTask[]): Promise<WorkerAnswer[]> {
  return Promise.all(tasks.map((task) => inWorker(task)))
}

function inWorker(task: WorkerTask): Promise<WorkerAnswer> {
  const execArgv = ['--conditions=@skein/source', '--disable-warning=ExperimentalWarning']
  const file = join(import.meta.dirname, 'seed-worker.ts')
  const worker = new Worker(file, { workerData: task, execArgv })
  return new Promise((resolve, reject) => {
    worker.once('error', reject)
    worker.once('message', (answer: WorkerAnswer) => {
      void worker.terminate()
      if (answer.failure === undefined) resolve(answer)
      else reject(new Error(answer.failure))
    })
  })
}
