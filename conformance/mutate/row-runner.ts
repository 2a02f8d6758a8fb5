import { fork, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { root } from '../../scripts/workspace.ts'
import { endGroup } from './end-group.ts'

/** Asks for one run of a row's tests. */
export interface RunRequest {
  readonly row: string
  readonly files: readonly string[]
  /** The mutant that is on, as `file#id`; without one, the run says which mutants it reaches. */
  readonly mutant?: string
  /** How long the tests may loop. */
  readonly limitMs: number
}

export interface RowRun {
  /** How many of the row's tests passed. */
  readonly passed: number
  /** Whether one of them failed, a file did not load, or an error was left uncaught. */
  readonly isRed: boolean
  readonly ms: number
  /** What ran, when no mutant was on. */
  readonly reached: readonly Reached[]
}

/** The mutants, as `file#id`, that the row's tests in a file reach. */
export interface Reached {
  readonly testFile: string
  readonly mutants: readonly string[]
}

/** Runs the tests of rows in a process of its own, which it replaces when a mutant hangs or ends it. */
export class RowRunner {
  readonly #startMs: number
  #child: Promise<ChildProcess> | undefined

  /** `startMs` is what a worker may need beyond the limit to start and to load modules. */
  constructor(startMs = 20_000) {
    this.#startMs = startMs
  }

  /** `stopped` when the process did not answer in time, or ended. */
  async run(request: RunRequest): Promise<RowRun | 'stopped'> {
    const child = await (this.#child ??= startProcess())
    const answer = new Promise<RowRun | 'stopped'>((resolve) => {
      const timer = setTimeout(() => resolve('stopped'), request.limitMs + this.#startMs)
      const onMessage = (message: unknown) => end(message as RowRun)
      const onExit = () => end('stopped')
      function end(result: RowRun | 'stopped'): void {
        clearTimeout(timer)
        child.off('message', onMessage)
        child.off('exit', onExit)
        resolve(result)
      }
      child.on('message', onMessage)
      child.on('exit', onExit)
    })
    child.send(request)
    const result = await answer
    if (result === 'stopped') await this.close()
    return result
  }

  async close(): Promise<void> {
    const child = await this.#child
    this.#child = undefined
    if (child?.pid === undefined) return
    child.removeAllListeners()
    endGroup(child.pid)
  }
}

function startProcess(): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, 'test-process.ts'), [], {
    cwd: root,
    detached: true,
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...process.env, NODE_ENV: 'test' },
  })
  return new Promise((resolve, reject) => {
    child.once('message', () => {
      child.removeAllListeners()
      resolve(child)
    })
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`Vitest did not start (code ${code}).`)))
  })
}
