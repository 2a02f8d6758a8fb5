/**
 * A small discrete-event model of a cluster. A turn is a sequence of visits: to the CPU of a node, of the
 * database, of the engine, and waits for disk and network. It is given what one turn costs, and says how many
 * turns per second a cluster does, how long they take, and which part is busy. `scale-model.test.ts` checks it
 * against bench/scale.json; `node --conditions=@skein/source bench/scale-model.ts` prints what docs/scaling.md
 * says about clusters that were not measured.
 */
import { seededRandom } from '@skein/base'
import type { ScalePoint } from './scale.ts'

/** What one turn costs, in ms. */
export interface TurnCost {
  readonly nodeMs: number
  readonly databaseMs: number
  readonly engineMs: number
  readonly clientMs: number
  /** Waits that use no CPU: the disk at commits, and the network. */
  readonly waitMs: number
  /** How often the turn goes from a node to the database and back. */
  readonly roundTrips: number
}

/** The machines of a cluster. */
export interface ClusterModel {
  /** Processes that work on threads; each uses one CPU at a time. */
  readonly nodes: number
  /** CPUs by part. Parts with the same name of machine share its CPUs. */
  readonly machines: Readonly<
    Record<string, { readonly cpus: number; readonly othersCpus?: number }>
  >
  readonly placement: Readonly<Record<Part, string>>
  readonly cost: TurnCost
  /** Either threads that always have a next message, or messages per second that arrive at random. */
  readonly load: { readonly threads: number } | { readonly arrivalsPerSecond: number }
  readonly seconds?: number
  readonly seed?: number
}

/** The parts of a cluster that need CPU. */
export type Part = 'node' | 'database' | 'engine' | 'client'

/** What the model says. */
export interface ModelResult {
  readonly turnsPerSecond: number
  readonly turnMs: { readonly p50: number; readonly p99: number }
  /** How busy each machine is, from 0 to 1. */
  readonly busy: Readonly<Record<string, number>>
  /** How busy the processes of nodes are, from 0 to 1. */
  readonly nodesBusy: number
}

interface Job {
  readonly ms: number
  /** The process that does it, if the process does one thing at a time. */
  readonly process: Process | undefined
  readonly done: () => void
}

interface Process {
  isBusy: boolean
  busyMs: number
  readonly waiting: { readonly machine: Machine; readonly job: Job }[]
}

class Machine {
  readonly #events: Events
  #free: number
  readonly cpus: number
  readonly #queue: Job[] = []
  #head = 0
  busyMs = 0

  constructor(cpus: number, events: Events) {
    this.cpus = cpus
    this.#free = cpus
    this.#events = events
  }

  run(job: Job): void {
    const { process } = job
    if (process?.isBusy) {
      process.waiting.push({ machine: this, job })
      return
    }
    if (process) process.isBusy = true
    this.#queue.push(job)
    this.#pump()
  }

  #pump(): void {
    while (this.#free > 0 && this.#head < this.#queue.length) {
      const job = this.#queue[this.#head++]!
      if (this.#head > 1000) {
        this.#queue.splice(0, this.#head)
        this.#head = 0
      }
      this.#free--
      this.#events.after(job.ms, () => {
        this.#free++
        this.busyMs += job.ms
        if (job.process) {
          job.process.busyMs += job.ms
          job.process.isBusy = false
          const next = job.process.waiting.shift()
          if (next) next.machine.run(next.job)
        }
        job.done()
        this.#pump()
      })
    }
  }
}

/** What happens later, in a heap by time. */
class Events {
  now = 0
  readonly #heap: { readonly at: number; readonly run: () => void }[] = []

  after(ms: number, run: () => void): void {
    const heap = this.#heap
    heap.push({ at: this.now + ms, run })
    for (let i = heap.length - 1; i > 0;) {
      const parent = (i - 1) >> 1
      if (heap[parent]!.at <= heap[i]!.at) break
      ;[heap[parent], heap[i]] = [heap[i]!, heap[parent]!]
      i = parent
    }
  }

  runUntil(end: number): void {
    const heap = this.#heap
    while (heap.length > 0 && heap[0]!.at <= end) {
      const { at, run } = heap[0]!
      const last = heap.pop()!
      if (heap.length > 0) heap[0] = last
      for (let i = 0; ;) {
        let least = i
        for (const child of [2 * i + 1, 2 * i + 2])
          if (child < heap.length && heap[child]!.at < heap[least]!.at) least = child
        if (least === i) break
        ;[heap[least], heap[i]] = [heap[i]!, heap[least]!]
        i = least
      }
      this.now = at
      run()
    }
    this.now = end
  }
}

/** The time that one thing of other programs takes on a CPU: about a slice of the scheduler. */
const OTHERS_SLICE_MS = 2

/** Runs the model. */
export function simulate(model: ClusterModel): ModelResult {
  const { cost, placement, load, seconds = 20, seed = 1 } = model
  const random = seededRandom(seed)
  const events = new Events()
  const machines = new Map(
    Object.entries(model.machines).map(([name, { cpus }]) => [name, new Machine(cpus, events)]),
  )
  for (const [name, { othersCpus = 0 }] of Object.entries(model.machines)) {
    if (othersCpus <= 0) continue
    const arrive = (): void => {
      machines.get(name)!.run({ ms: OTHERS_SLICE_MS, process: undefined, done: () => {} })
      events.after((OTHERS_SLICE_MS / othersCpus) * (0.5 + random()), arrive)
    }
    events.after(0, arrive)
  }
  const newProcess = (): Process => ({ isBusy: false, busyMs: 0, waiting: [] })
  const nodes = Array.from({ length: model.nodes }, newProcess)
  const client = newProcess()
  const vary = (ms: number): number => ms * (0.5 + random())
  const warmUpMs = 2_000
  const times: number[] = []

  const turn = (node: Process, ended: () => void): void => {
    const from = events.now
    const trips = cost.roundTrips
    const visit = (
      part: Part,
      ms: number,
      process: Process | undefined,
      done: () => void,
    ): void => {
      if (ms <= 0) return done()
      machines.get(placement[part])!.run({ ms: vary(ms), process, done })
    }
    const trip = (left: number): void => {
      if (left === 0)
        return visit('node', cost.nodeMs / (trips + 1), node, () => {
          if (events.now > warmUpMs) times.push(events.now - from)
          ended()
        })
      visit('node', cost.nodeMs / (trips + 1), node, () =>
        visit('database', cost.databaseMs / trips, undefined, () =>
          events.after(vary(cost.waitMs / trips), () => trip(left - 1)),
        ),
      )
    }
    visit('client', cost.clientMs, client, () =>
      visit('engine', cost.engineMs, undefined, () => trip(trips)),
    )
  }

  if ('threads' in load)
    for (let thread = 0; thread < load.threads; thread++) {
      const node = nodes[thread % nodes.length]!
      const again = (): void => turn(node, again)
      events.after(random() * 10, again)
    }
  else {
    const arrive = (): void => {
      turn(nodes[Math.floor(random() * nodes.length)]!, () => {})
      events.after((-Math.log(1 - random()) * 1000) / load.arrivalsPerSecond, arrive)
    }
    events.after(0, arrive)
  }
  const endMs = warmUpMs + seconds * 1000
  events.runUntil(endMs)
  times.sort((a, b) => a - b)
  return {
    turnsPerSecond: times.length / seconds,
    turnMs: {
      p50: times[times.length >> 1] ?? Infinity,
      p99: times[Math.floor(times.length * 0.99)] ?? Infinity,
    },
    busy: Object.fromEntries(
      [...machines].map(([name, { busyMs, cpus }]) => [name, busyMs / cpus / endMs]),
    ),
    nodesBusy: nodes.reduce((sum, { busyMs }) => sum + busyMs, 0) / nodes.length / endMs,
  }
}

/** The machine that bench/scale.ts ran on. */
const BENCH_CPUS = 2
/** Transactions of PostgreSQL are the round trips of a turn; SQLite commits in the process. */
const SQLITE_TRIPS = 8

/** Returns the model of a measured point. `waitMs` is not measured: see `waitOf`. */
export function modelOf(point: ScalePoint, waitMs: number): ClusterModel {
  const { cpuMs, threads, nodes, othersCpus, commits } = point
  const machine = 'bench'
  return {
    nodes,
    machines: { [machine]: { cpus: BENCH_CPUS, othersCpus } },
    placement: { node: machine, database: machine, engine: machine, client: machine },
    cost: {
      nodeMs: cpuMs.nodes,
      databaseMs: cpuMs.postgres,
      engineMs: cpuMs.engine,
      clientMs: cpuMs.client,
      waitMs,
      roundTrips: commits > 0 ? Math.round(commits) : SQLITE_TRIPS,
    },
    load: { threads },
  }
}

/**
 * Returns the waits of a turn, which cannot be measured directly: those with which the model reproduces the
 * point with one thread and one node. The other points of a set-up then check it.
 */
export function waitOf(points: readonly ScalePoint[], setUp: string): number {
  const point = points.find((one) => one.setUp === setUp && one.threads === 1 && one.nodes === 1)
  if (!point) throw new Error(`There is no point with one thread and one node: ${setUp}.`)
  let [low, high] = [0, 1000 / point.turnsPerSecond]
  for (let i = 0; i < 20; i++) {
    const middle = (low + high) / 2
    if (simulate(modelOf(point, middle)).turnsPerSecond > point.turnsPerSecond) low = middle
    else high = middle
  }
  return low
}

/** One row of the table in docs/scaling.md: a partition with machines of its own. */
export interface Forecast {
  readonly arrivalsPerSecond: number
  readonly nodes: number
  readonly turnsPerSecond: number
  readonly p99Ms: number
  readonly nodesBusy: number
  readonly databaseBusy: number
  readonly engineBusy: number
}

/** CPUs of the machine of the database and of those of the engine, and the network between machines. */
const DATABASE_CPUS = 32
const ENGINE_CPUS = 3 * 8
const NETWORK_MS = 0.5

/** Says what a partition does: one database, its nodes and its engine, each on machines of their own. */
export function forecast(
  points: readonly ScalePoint[],
  { setUp, arrivalsPerSecond, nodes }: { setUp: string; arrivalsPerSecond: number; nodes: number },
): Forecast {
  const point = points.find((one) => one.setUp === setUp && one.nodes === 1 && one.threads === 32)
  if (!point) throw new Error(`There is no point with 32 threads and one node: ${setUp}.`)
  const { cost } = modelOf(point, waitOf(points, setUp))
  const { turnsPerSecond, turnMs, busy, nodesBusy } = simulate({
    nodes,
    machines: {
      nodes: { cpus: nodes },
      database: { cpus: DATABASE_CPUS },
      engine: { cpus: ENGINE_CPUS },
      clients: { cpus: 1000 },
    },
    placement: { node: 'nodes', database: 'database', engine: 'engine', client: 'clients' },
    cost: { ...cost, clientMs: 0, waitMs: cost.waitMs + NETWORK_MS * cost.roundTrips },
    load: { arrivalsPerSecond },
    seconds: 4,
  })
  return {
    arrivalsPerSecond,
    nodes,
    turnsPerSecond: Math.round(turnsPerSecond),
    p99Ms: Math.round(turnMs.p99),
    nodesBusy,
    databaseBusy: busy['database'] ?? 0,
    engineBusy: busy['engine'] ?? 0,
  }
}

async function main(): Promise<void> {
  const { readFileSync } = await import('node:fs')
  const { join } = await import('node:path')
  const file = join(import.meta.dirname, 'scale.json')
  const points = JSON.parse(readFileSync(file, 'utf8')) as readonly ScalePoint[]
  const percent = (share: number): string => `${Math.round(share * 100)} %`
  for (const setUp of ['PostgreSQL, Restate', 'PostgreSQL, queue']) {
    console.log(`\n${setUp}: wait ${waitOf(points, setUp).toFixed(1)} ms`)
    for (const arrivalsPerSecond of [500, 1000, 2000, 2500, 3500, 5000]) {
      const nodes = Math.ceil(arrivalsPerSecond / 70)
      const row = forecast(points, { setUp, arrivalsPerSecond, nodes })
      console.log(
        `| ${arrivalsPerSecond} | ${nodes} | ${row.turnsPerSecond} | ${row.p99Ms} | ${percent(row.nodesBusy)} | ${percent(row.databaseBusy)} | ${percent(row.engineBusy)} |`,
      )
    }
  }
}

if (process.argv[1] === import.meta.filename) await main()
