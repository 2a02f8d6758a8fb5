import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { seededRandom } from '@skein/base'
import { postgresStore, type PostgresStore } from '@skein/postgres'
import { createClient } from '@skein/server/client'
import pg from 'pg'
import { expect } from 'vitest'
import { foldKernel } from '../../runtime/src/state/fold.ts'
import { allHeads, checkKilled } from '../../runtime/test/kill/check-killed.ts'
import { decide, EffectsFile } from '../../runtime/test/kill/kill-agents.ts'
import { newPool, type TestPostgres } from './server.ts'

/** The settings of a node in a process of its own. */
export interface NodeSettings {
  readonly databaseUrl: string
  /** The name of the node in leases; a new one for each process. */
  readonly owner: string
  readonly port: number
  /** The file that calls write to. */
  readonly effects: string
  /** How long answers of the model and calls take, about. */
  readonly thinkMs: number
  /** How long calls take before their effect, and again after it. */
  readonly toolMs: number | undefined
  /**
   * The queue in the database, or the module whose `dispatcher` makes the dispatcher. Default: the one of the
   * process.
   */
  readonly dispatcher: 'queue' | { readonly module: string; readonly options: unknown } | undefined
}

export interface LoadOptions {
  readonly server: TestPostgres
  /** Where the nodes reach the server, e.g. through a proxy. Default: directly. */
  readonly url?: string
  readonly threads?: number
  readonly thinkMs?: number
  readonly toolMs?: number
  /** Makes the options of the dispatcher of a node. Default: no engine. */
  readonly dispatcher?: (index: number) => NodeSettings['dispatcher']
  readonly seed?: number
}

export const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

let databases = 0

/**
 * Nodes on one new database under load: people write to many threads, whose agents make calls, have children,
 * set timers and ask for approvals; somebody approves, and somebody reads along. Each request goes to any node.
 */
export class Load {
  readonly store: PostgresStore
  readonly effects: EffectsFile
  readonly errors: string[] = []
  /** How long the threads of nodes that died waited until another node claimed them, in ms. */
  readonly pauses: number[] = []
  /** How much of each of these was after the end of the dead node's lease, in ms. */
  readonly afterLease: number[] = []
  readonly random: () => number
  /** The ids of the acknowledged messages of each thread. */
  readonly sent: string[][] = []
  readonly #options: LoadOptions
  readonly #databaseUrl: string
  readonly #folder: string
  readonly #nodes: (Node | undefined)[] = []
  /** A process that has loaded everything and waits for its settings. */
  #spare: Promise<ChildProcess> | undefined
  readonly #pool: pg.Pool
  readonly #readers: Reader[] = []
  /** Sends requests to any node. */
  readonly client: ReturnType<typeof createClient>
  #isEnding = false
  #people: Promise<unknown>[] = []
  #approver: Promise<void> | undefined
  #watching: Promise<void>[] = []

  private constructor(
    options: LoadOptions,
    parts: {
      readonly databaseUrl: string
      readonly store: PostgresStore
      readonly pool: pg.Pool
      readonly folder: string
    },
  ) {
    this.#options = options
    this.#databaseUrl = parts.databaseUrl
    this.#folder = parts.folder
    this.store = parts.store
    this.#pool = parts.pool
    this.random = seededRandom(options.seed ?? Number(process.env['SKEIN_SEED'] ?? 7))
    this.effects = new EffectsFile(join(parts.folder, 'effects.txt'))
    this.client = createClient({
      url: 'http://any.node',
      fetch: this.#fetch,
      streams: { wait: (ms) => pass(Math.min(ms, 200)) },
    })
  }

  static async open(options: LoadOptions): Promise<Load> {
    const name = `load${++databases}`
    const admin = new pg.Client({ connectionString: options.server.url })
    await admin.connect()
    await admin.query(`CREATE DATABASE ${name}`)
    await admin.end()
    const at = (url: string): string => url.replace(/\/postgres$/, `/${name}`)
    const folder = mkdtempSync(join(tmpdir(), 'skein-load-'))
    writeFileSync(join(folder, 'effects.txt'), '')
    const store = await postgresStore({
      connectionString: at(options.server.url),
      retryMs: 60_000,
    })
    const databaseUrl = at(options.url ?? options.server.url)
    const pool = newPool({ connectionString: at(options.server.url), max: 2 })
    return new Load(options, { databaseUrl, store, pool, folder })
  }

  /**
   * Starts a process that will be the next node, and waits until it has loaded everything. On a small machine that
   * takes seconds, in which the nodes that run get less of it.
   */
  async prepare(): Promise<void> {
    this.#spare ??= loadWorker()
    await this.#spare
  }

  /** Starts a node under this number; a new process each time. */
  async start(index: number): Promise<Node> {
    const { thinkMs = 60, toolMs, dispatcher } = this.#options
    const port = await freePort()
    const owner = `node ${index} ${randomUUID()}`
    const settings: NodeSettings = {
      databaseUrl: this.#databaseUrl,
      owner,
      port,
      effects: join(this.#folder, 'effects.txt'),
      thinkMs,
      toolMs,
      dispatcher: dispatcher?.(index),
    }
    const spare = this.#spare
    this.#spare = undefined
    const child = await (spare ?? loadWorker())
    child.send(settings)
    await new Promise<void>((resolve, reject) => {
      child.on('message', (said: { readonly isReady?: true; readonly error?: string }) => {
        if (said.isReady) resolve()
        else if (said.error !== undefined) this.errors.push(`${index}: ${said.error}`)
      })
      child.once('exit', (code) => reject(new Error(`Node ${index} ended with ${code}.`)))
    })
    child.on('error', () => {}) // a message to a node that has just ended
    const node = { index, owner, port, child }
    this.#nodes[index] = node
    return node
  }

  /** Kills a node. How long its threads wait is added to `pauses`. */
  async kill(index: number): Promise<void> {
    const node = this.#nodes[index]!
    this.#nodes[index] = undefined
    const ended = once(node.child, 'exit')
    node.child.kill('SIGKILL')
    await ended
    this.watchTakeover(node.owner)
  }

  /** Measures how long it takes until the threads that an owner holds are claimed by others. */
  watchTakeover(owner: string): void {
    const from = performance.now()
    // A node may die between the last commit of a thread and the release of its lease: then nobody has to come.
    // By an index: lists of all threads, ten times a second, would slow down what is measured.
    const text = `SELECT id, lease_until::float8 AS until FROM skein.threads
      WHERE lease_owner = $1 AND wake_at IS NOT NULL`
    const held = async (): Promise<Map<string, number>> => {
      const { rows } = await this.#pool.query<{ id: string; until: number }>(text, [owner])
      return new Map(rows.map(({ id, until }) => [id, until]))
    }
    const watch = async (): Promise<void> => {
      for (let left = await held(); left.size > 0; await pass(100)) {
        const now = await held()
        for (const [id, until] of left) {
          if (now.has(id)) continue
          this.pauses.push(performance.now() - from)
          this.afterLease.push(Math.max(Date.now() - until, 0))
        }
        left = now
      }
    }
    this.#watching.push(awaitedLater(watch()))
  }

  /** Measures how long it takes from now until the threads that are due or worked on have gone on. */
  watchProgress(): void {
    const from = performance.now()
    const marks = async (): Promise<Map<string, string>> => {
      const heads = await allHeads(this.store)
      return new Map(
        heads.flatMap(({ id, lease, wakeAt, seq, epoch }) =>
          lease === null && (wakeAt ?? Infinity) > Date.now() ? [] : [[id, `${seq} ${epoch}`]],
        ),
      )
    }
    const watch = async (): Promise<void> => {
      for (const left = await marks(); left.size > 0; await pass(100)) {
        const now = await marks()
        for (const [id, mark] of left) {
          if (now.get(id) === mark) continue
          left.delete(id)
          this.pauses.push(performance.now() - from)
        }
      }
    }
    this.#watching.push(awaitedLater(watch()))
  }

  /** The node that works on a thread. */
  async ownerOf(threadId: string): Promise<Node> {
    const owner = (await this.store.head(threadId))?.lease?.owner
    const node = this.#nodes.find((one) => one?.owner === owner)
    if (!node) throw new Error(`Nobody works on ${threadId}.`)
    return node
  }

  /** Lets people begin to write, read and approve. */
  async begin(): Promise<void> {
    const { threads = 12 } = this.#options
    const ids = await Promise.all(
      Array.from({ length: threads }, (_, thread) =>
        this.#try(() =>
          this.client.threads.create({ agent: 'desk', clientId: `thread-${thread}` }),
        ),
      ),
    )
    this.#people = ids.map(({ id }, thread) => awaitedLater(this.#talk(id, thread)))
    this.#approver = awaitedLater(this.#approve())
    for (const { id } of ids.slice(0, 4)) this.#readers.push(new Reader(this.client, id))
  }

  /** Lets people write no more, and waits until everything is done. */
  async end(ms = 60_000): Promise<void> {
    this.#isEnding = true
    await Promise.all(this.#people)
    await this.idle(ms)
    await Promise.all([this.#approver, ...this.#watching])
  }

  /** Checks that nothing was lost, doubled or out of order, in logs, effects, timers, children and streams. */
  async check(): Promise<string> {
    const given = { wanted: this.sent, effects: this.effects }
    const { threads, outcomes } = await checkKilled(this.store, given).catch(
      async (error: unknown) => {
        process.stderr.write(`${await this.#toldOf(String(error))}\n`)
        throw error
      },
    )
    for (const reader of this.#readers) await reader.check(this.store)
    const sums = this.#readers.map(({ events }) => events.length)
    return `${this.sent.flat().length} messages, ${threads} threads, ${sums.reduce((a, b) => a + b, 0)} streamed events, ${JSON.stringify(outcomes)}`
  }

  async stop(): Promise<void> {
    for (const reader of this.#readers) reader.stop()
    await Promise.all(
      this.#nodes.map(async (node) => {
        if (!node || node.child.exitCode !== null || node.child.signalCode !== null) return
        const ended = once(node.child, 'exit')
        const timer = setTimeout(() => node.child.kill('SIGKILL'), 10_000)
        node.child.send('stop')
        await ended
        clearTimeout(timer)
      }),
    )
    const spare = await this.#spare?.catch(() => undefined)
    if (spare) {
      const ended = once(spare, 'exit')
      spare.kill('SIGKILL')
      await ended
    }
    await this.#pool.end()
    await this.store.close()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** The p50, p99 and the longest of `pauses`, or of what was after the end of the lease, in ms. */
  pauseStatistics(pauses: readonly number[] = this.pauses): {
    readonly p50: number
    readonly p99: number
    readonly most: number
  } {
    const sorted = pauses.toSorted((a, b) => a - b).map(Math.round)
    const at = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? 0
    return { p50: at(0.5), p99: at(0.99), most: sorted.at(-1) ?? 0 }
  }

  /** Sends a request to any node that runs, as a load balancer does. */
  readonly #fetch = (async (input: string, init?: RequestInit) => {
    const alive = this.#nodes.filter((node) => node !== undefined)
    const node = alive[Math.floor(this.random() * alive.length)]
    if (!node) throw new TypeError('No node runs.')
    return fetch(input.replace('http://any.node', `http://127.0.0.1:${node.port}`), init)
  }) as typeof fetch

  /** Repeats a request until it is answered. All of them may be repeated: messages and threads have ids. */
  async #try<T>(work: () => Promise<T>): Promise<T> {
    const until = performance.now() + 60_000
    for (;;) {
      try {
        return await work()
      } catch (error) {
        const isTemporary = (error as { readonly isTemporary?: boolean }).isTemporary ?? true
        if (!isTemporary || performance.now() > until) throw error
        await pass(50)
      }
    }
  }

  async #talk(threadId: string, thread: number): Promise<void> {
    const sent: string[] = (this.sent[thread] = [])
    for (let number = 0; !this.#isEnding; number++) {
      // People do not write on for ever without an answer: on a slow machine the end would never be reached.
      if (number % 4 === 3) await this.#answered(threadId)
      const messageId = `m-${thread}-${number}`
      await this.#try(() => this.client.threads.send(threadId, { text: messageId, messageId }))
      sent.push(messageId)
      await pass(250 + this.random() * 750)
    }
  }

  /** Waits until a thread has nothing to do, or waits for a person. */
  async #answered(threadId: string): Promise<void> {
    const until = performance.now() + 30_000
    while (!this.#isEnding && performance.now() < until) {
      const lifecycle = (await this.store.head(threadId))?.lifecycle
      if (lifecycle !== 'running' && lifecycle !== 'queued') return
      await pass(200)
    }
  }

  async #approve(): Promise<void> {
    while (!this.#isEnding || !(await this.#isIdle())) {
      const items = await this.#try(() => this.client.inbox.list())
      for (const item of items)
        // Another decision may have come first: a request whose answer was lost is repeated.
        await decide(this.client.inbox, item, this.effects).catch(() => {})
      await pass(100)
    }
  }

  async #isIdle(): Promise<boolean> {
    const heads = await allHeads(this.store)
    const seemsIdle = heads.every(
      ({ wakeAt, lease, lifecycle, waiting }) =>
        wakeAt === null &&
        (lease === null || lease.until < Date.now()) &&
        // An effect in doubt waits for a person also in a thread that is idle otherwise.
        waiting === 0 &&
        !['queued', 'running', 'waiting'].includes(lifecycle),
    )
    return seemsIdle && (await this.#inSession(heads.map(({ id }) => id))).length === 0
  }

  /** Returns the threads whose logs say that a session is open, whatever their heads say. */
  async #inSession(ids: readonly string[]): Promise<string[]> {
    const open: string[] = []
    for (const id of ids)
      if (foldKernel(await this.store.events(id)).session !== undefined) open.push(id)
    return open
  }

  /** Returns the heads and the logs of the threads that a text names, and the last errors of the nodes. */
  async #toldOf(text: string): Promise<string> {
    const lines: string[] = []
    for (const head of await allHeads(this.store)) {
      if (!text.includes(head.id)) continue
      const log = await this.store.events(head.id)
      lines.push(JSON.stringify(head), ...log.map((stored) => JSON.stringify(stored)))
    }
    return [...lines, ...this.errors.slice(-20)].join('\n')
  }

  /** Resolves when everything is done. Rejects when nothing at all has gone on for `ms`. */
  async idle(ms: number): Promise<void> {
    let seen = ''
    let since = performance.now()
    for (;;) {
      if (await this.#isIdle()) return
      const heads = await allHeads(this.store)
      const now = heads.map(({ seq, epoch }) => `${seq} ${epoch}`).join()
      if (now !== seen) since = performance.now()
      seen = now
      if (performance.now() - since > ms) {
        const open = await this.#inSession(heads.map(({ id }) => id))
        const busy = heads.filter(
          ({ id, wakeAt, lease, waiting }) =>
            wakeAt !== null || lease !== null || waiting > 0 || open.includes(id),
        )
        throw new Error(
          `For ${ms} ms nothing has happened to these: ${JSON.stringify(busy)} ${await this.#toldOf(open.join())}`,
        )
      }
      await pass(200)
    }
  }
}

/** Starts the process of a node. Resolves when it has loaded everything and waits for its settings. */
async function loadWorker(): Promise<ChildProcess> {
  const child = fork(join(import.meta.dirname, 'load-worker.ts'), {
    execArgv: ['--conditions=@skein/source', '--disable-warning=ExperimentalWarning'],
    env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'skein-compiled') },
  })
  await new Promise<void>((resolve, reject) => {
    child.once('message', () => resolve())
    child.once('exit', (code) => reject(new Error(`A node ended with ${code} before its start.`)))
  })
  return child
}

interface Node {
  readonly index: number
  readonly owner: string
  readonly port: number
  readonly child: ChildProcess
}

/** Somebody who reads along from the beginning, from any node, and reconnects when it breaks. */
class Reader {
  readonly threadId: string
  readonly events: { readonly id: string; readonly type: string }[] = []
  readonly #leaving = new AbortController()
  readonly #reading: Promise<void>

  constructor(client: ReturnType<typeof createClient>, threadId: string) {
    this.threadId = threadId
    const read = async (): Promise<void> => {
      const { signal } = this.#leaving
      for await (const { id, event } of client.stream(threadId, { signal }))
        this.events.push({ id, type: event.type })
    }
    this.#reading = awaitedLater(read())
  }

  /** Compares what came with what is in the log: nothing lost, nothing doubled. */
  async check(store: PostgresStore): Promise<void> {
    const log = (await store.events(this.threadId)).map(({ seq, event }) => `${seq} ${event.type}`)
    const got = (): string[] =>
      this.events
        .filter(({ type }) => !/_(delta|progress)$/.test(type))
        .map(({ id, type }) => `${Math.trunc(Number(id))} ${type}`)
    for (let waits = 0; got().at(-1) !== log.at(-1) && waits < 200; waits++) await pass(50)
    this.stop()
    await this.#reading
    expect(got()).toEqual(log)
  }

  stop(): void {
    this.#leaving.abort()
  }
}

/** Marks a promise as one that `end` or `check` awaits: if a test fails before, nobody does. */
function awaitedLater<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
