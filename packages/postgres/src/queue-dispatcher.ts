import { SkeinError } from '@skein/base'
import type { Dispatcher, RuntimeOptions } from '@skein/runtime'
import { type Engine, engineDispatcher, type EngineNode } from '@skein/runtime/engine'
import pg from 'pg'
import type { Logger, Runner, WorkerUtils } from 'graphile-worker'
import { surviveBrokenConnections } from './connections.ts'

/** Options of `queueDispatcher`. */
export interface QueueDispatcherOptions {
  /**
   * The database of the queue, usually that of the store. The connection must not go through a pooler
   * in transaction mode, which does not pass notifications on.
   */
  readonly connectionString: string
  /** The schema of the queue's tables, which it creates at the start. Default `skein_queue`. */
  readonly schema?: string
  /** How many connections the queue may open. Default 4. */
  readonly maxConnections?: number
  /** How often, on average, this node looks in the store for lost wake-ups. Default 1000 ms. */
  readonly sweepMs?: number
}

/**
 * Creates the dispatcher of a node whose threads are woken through a queue in PostgreSQL
 * (graphile-worker), without another server to run. Each wake-up is a job that one of the nodes takes.
 * The lease in the store keeps two nodes from working on one thread. If a node dies, the other nodes
 * find its threads in the store, long before the queue would repeat the jobs.
 *
 *     const connectionString = process.env.DATABASE_URL
 *     const store = await postgresStore({ connectionString })
 *     const dispatcher = queueDispatcher({ connectionString })
 *     const runtime = await createRuntime({ agents, store, dispatcher })
 */
export function queueDispatcher(
  options: QueueDispatcherOptions,
): NonNullable<RuntimeOptions['dispatcher']> {
  return ({ maxConcurrent = 128, onError, ...parts }): Dispatcher => {
    const engine = new QueueEngine(options, { maxConcurrent, onError })
    return engineDispatcher({ ...parts, maxConcurrent, onError, engine, sweepMs: options.sweepMs })
  }
}

const TASK = 'skein_wake'
/** How often the queue is asked for delayed jobs that are due; new jobs are announced by a notification. */
const POLL_MS = 500
/** How long a node that is fully busy keeps the jobs that it has fetched, before it gives them back. */
const KEPT_MS = 2_000
/** The most jobs that are added by one statement. */
const BATCH = 200
/** How long a node waits before it connects to the queue again after an outage. */
const RESTART_MS = 500
/** How long the stop waits for the queue's statements, which stay unanswered in an outage. */
const STOP_MS = 5_000

interface Job {
  readonly threadId: string
  readonly runAt: Date | undefined
  readonly resolve: () => void
  readonly reject: (error: unknown) => void
}

class QueueEngine implements Engine {
  readonly #options: QueueDispatcherOptions
  readonly #maxConcurrent: number
  readonly #onError: (error: unknown) => void
  #runner: Runner | undefined
  #utils: WorkerUtils | undefined
  #pool: pg.Pool | undefined
  /** Jobs that wait to be added until the running statement has ended, by their key. */
  #waiting = new Map<string, Job>()
  #isAdding = false
  #isStopped = false
  #whenStopped: () => void = () => {}
  #starting: Promise<void> | undefined
  #supervising: Promise<void> | undefined

  constructor(
    options: QueueDispatcherOptions,
    { maxConcurrent, onError }: { maxConcurrent: number; onError: (error: unknown) => void },
  ) {
    this.#options = options
    this.#maxConcurrent = maxConcurrent
    this.#onError = onError
  }

  start(node: EngineNode): Promise<void> {
    return (this.#starting = this.#start(node))
  }

  async #start(node: EngineNode): Promise<void> {
    const { connectionString, schema = 'skein_queue', maxConnections = 4 } = this.#options
    const { Logger, makeWorkerUtils, run } = await import('graphile-worker')
    const pgPool = new QueuePool({ connectionString, max: maxConnections })
    this.#pool = pgPool
    surviveBrokenConnections(pgPool)
    const options = { pgPool, schema, logger: this.#logger(Logger) }
    try {
      this.#utils = await makeWorkerUtils(options)
      await this.#utils.migrate()
    } catch (cause) {
      throw unreachable(connectionString, cause)
    }
    if (this.#isStopped) return
    const start = (): Promise<Runner> =>
      run({
        ...options,
        noHandleSignals: true,
        pollInterval: POLL_MS,
        preset: {
          worker: {
            concurrentJobs: this.#maxConcurrent,
            localQueue: { size: this.#maxConcurrent, ttl: KEPT_MS },
            // A delay of 0 is a batch of its own for each job. Without batches nothing awaits these statements, and
            // one that fails would end the process.
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          },
        },
        taskList: { [TASK]: (payload) => this.#work(node, threadOf(payload)) },
      })
    this.#supervising = this.#supervise(await start(), start)
  }

  /**
   * Starts another runner when one shuts down, which it does when one of its statements fails in an outage. Its end
   * is not awaited: if a second job ends meanwhile, graphile-worker 0.18.0 counts its open statements wrong and never
   * ends.
   */
  async #supervise(first: Runner, start: () => Promise<Runner>): Promise<void> {
    const whenStopped = new Promise<void>((resolve) => (this.#whenStopped = resolve))
    for (let runner: Runner | undefined = first; ;) {
      this.#runner = runner
      if (runner) await Promise.race([whenStopped, shutDown(runner)])
      if (!this.#isStopped) {
        runner?.stop().catch(() => {}) // it has told the logger why
        await Promise.race([whenStopped, new Promise((resolve) => setTimeout(resolve, RESTART_MS))])
      }
      if (this.#isStopped) return
      runner = await start().catch((error: unknown) => void this.#onError(error))
      // The node was stopped meanwhile.
      if (this.#isStopped) await runner?.stop().catch(() => {})
    }
  }

  /** Adds a job. Jobs that are added while a statement runs are written together by the next statement. */
  send(
    threadId: string,
    { delayMs = 0, key = 'now' }: Parameters<Engine['send']>[1],
  ): Promise<void> {
    const runAt = delayMs > 0 ? new Date(Date.now() + delayMs) : undefined
    return new Promise((resolve, reject) => {
      const jobKey = `${threadId} ${key}`
      const before = this.#waiting.get(jobKey)
      this.#waiting.set(jobKey, {
        threadId,
        runAt,
        resolve: () => (before?.resolve(), resolve()),
        reject: (error) => (before?.reject(error), reject(error as Error)),
      })
      if (!this.#isAdding) void this.#add()
    })
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#whenStopped()
    const end = async (): Promise<void> => {
      // What is being opened can be closed only when it is open. The caller of `start` gets the cause.
      await this.#starting?.catch(() => {})
      await this.#runner?.stop().catch(() => {}) // an outage has stopped it already
      await this.#supervising
      await this.#utils?.release()
      await this.#pool?.end()
    }
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, STOP_MS)))
    await Promise.race([end(), late]).finally(() => clearTimeout(timer))
  }

  async #work(node: EngineNode, threadId: string): Promise<void> {
    try {
      const { againMs } = await node.run(threadId)
      if (againMs !== undefined) await this.send(threadId, { delayMs: againMs, key: 'again' })
    } catch {
      // This node is stopping. A new job wakes the thread soon; the queue would repeat the failed job
      // only after seconds.
      await this.send(threadId, { delayMs: 50 })
    }
  }

  async #add(): Promise<void> {
    this.#isAdding = true
    while (this.#waiting.size > 0) {
      const batch = [...this.#waiting].slice(0, BATCH)
      for (const [jobKey] of batch) this.#waiting.delete(jobKey)
      const specs = batch.map(([jobKey, { threadId, runAt }]) => ({
        identifier: TASK,
        payload: { threadId },
        jobKey,
        runAt,
      }))
      try {
        await this.#utils?.addJobs(specs)
        for (const [, { resolve }] of batch) resolve()
      } catch (error) {
        for (const [, { reject }] of batch) reject(error)
      }
    }
    this.#isAdding = false
  }

  /**
   * Passes errors of the queue on to the runtime; other messages of the queue are dropped. A stop that waits no longer
   * closes the pool under the last jobs. That these cannot be marked as done is no error: their threads are found as
   * those of a node that has died are.
   */
  #logger(Class: typeof Logger): Logger {
    return new Class(() => (level, message) => {
      const isClosed = this.#isStopped && this.#pool?.ending === true
      if (level === 'error' && !isClosed)
        this.#onError(new Error(`The queue in PostgreSQL: ${message}`))
    })
  }
}

/** Resolves when a runner takes no more jobs. */
function shutDown({ events, promise }: Runner): Promise<void> {
  return new Promise((resolve) => {
    events.once('pool:gracefulShutdown', () => resolve())
    promise.then(resolve, () => resolve())
  })
}

/**
 * The queue returns the connection with which it listens twice if it is stopped before its LISTEN was answered and
 * the connection then breaks. The pool would throw where nothing catches it, which would end the process.
 */
class QueuePool extends pg.Pool {
  override connect(): Promise<pg.PoolClient>
  override connect(callback: ConnectCallback): void
  override connect(callback?: ConnectCallback): Promise<pg.PoolClient> | void {
    if (!callback) return super.connect()
    super.connect((error, client, release) => {
      let isReleased = !client
      callback(error, client, (broken) => {
        if (!isReleased) release(broken)
        isReleased = true
      })
    })
  }
}

type ConnectCallback = Parameters<pg.Pool['connect']>[0]

function unreachable(connectionString: string, cause: unknown): SkeinError {
  const { host, pathname } = new URL(connectionString)
  const why = cause instanceof Error ? cause.message : String(cause)
  return new SkeinError(`The queue in the database ${host}${pathname} cannot be opened: ${why}.`, {
    code: 'QUEUE_UNREACHABLE',
    hint: 'Check the address, and that the role may create the schema of the queue. The connection has to be direct, not through a pooler.',
    cause,
  })
}

function threadOf(payload: unknown): string {
  return (payload as { readonly threadId: string }).threadId // written by `#add`
}
