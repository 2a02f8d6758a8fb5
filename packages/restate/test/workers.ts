import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { tmpdir } from 'node:os'
import type { RestateDispatcherOptions } from '@skein/restate'

/** The settings of a node in a process of its own. */
export interface WorkerOptions {
  readonly engine: 'local' | 'restate' | 'queue'
  /** The name of the node in leases; a new one for each process. */
  readonly owner?: string
  /** Without it the store is a file in `folder`. */
  readonly databaseUrl?: string
  readonly folder?: string
  readonly restate?: RestateDispatcherOptions
  /** How long each answer of the model and each call takes. */
  readonly modelMs?: number
  readonly toolMs?: number
  /** The file that calls write to. */
  readonly effects?: string
}

/** What a node is asked to do. */
export type Request = { readonly id: number } & (
  | { readonly type: 'create' | 'usage' | 'stop' }
  | { readonly type: 'send'; readonly threadId: string; readonly text: string }
)

/** What a node says. */
export type Report =
  | { readonly type: 'ready' }
  | { readonly type: 'parked'; readonly threadId: string; readonly seq: number }
  | { readonly type: 'error'; readonly text: string }
  | {
      readonly type: 'answer'
      readonly id: number
      readonly value: string
      readonly error?: string
    }

/** A running node. */
export interface Worker {
  readonly process: ChildProcess
  readonly isAlive: boolean
  create(): Promise<string>
  /** Resolves when the message is acknowledged. Rejects if the node dies before. */
  send(threadId: string, text: string): Promise<void>
  /** CPU time in ms so far. */
  cpuMs(): Promise<number>
  stop(): Promise<void>
  kill9(): Promise<void>
}

/** Starts a node. `heard` is called with what it says of threads, and with its errors. */
export async function startWorker(
  options: WorkerOptions,
  heard: (report: Extract<Report, { type: 'parked' | 'error' }>) => void,
): Promise<Worker> {
  const child = fork(join(import.meta.dirname, 'worker.ts'), [JSON.stringify(options)], {
    execArgv: ['--conditions=@skein/source'],
    env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'skein-compiled') },
  })
  const open = new Map<number, { resolve(value: string): void; reject(error: Error): void }>()
  let count = 0
  let ready = (): void => {}
  const isReady = new Promise<void>((resolve, reject) => {
    ready = resolve
    child.once('exit', () => reject(new Error('The node ended before it was ready.')))
  })
  child.on('message', (report: Report) => {
    if (report.type === 'ready') ready()
    else if (report.type !== 'answer') heard(report)
    else {
      const asked = open.get(report.id)
      open.delete(report.id)
      if (report.error === undefined) asked?.resolve(report.value)
      else asked?.reject(new Error(report.error))
    }
  })
  const ended = once(child, 'exit').then(() => {
    for (const { reject } of open.values()) reject(new Error('The node has ended.'))
  })
  const ask = (request: Omit<Request, 'id'>): Promise<string> =>
    new Promise((resolve, reject) => {
      const id = count++
      open.set(id, { resolve, reject })
      child.send({ id, ...request }, (error) => error && reject(error))
    })
  await isReady
  return {
    process: child,
    get isAlive() {
      return child.exitCode === null && child.signalCode === null
    },
    create: () => ask({ type: 'create' }),
    send: async (threadId, text) =>
      void (await ask({ type: 'send', threadId, text } as Omit<Request, 'id'>)),
    cpuMs: async () => Number(await ask({ type: 'usage' })),
    async stop() {
      ask({ type: 'stop' }).catch(() => undefined)
      await ended
    },
    async kill9() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
