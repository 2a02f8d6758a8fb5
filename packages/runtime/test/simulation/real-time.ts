import { systemClock } from '@skein/base'
import { systemTimers, type ThreadHead } from '@skein/runtime'
import { type Lane, type LaneState, NotNowError } from '../../src/testing/simulation.ts'
import { chanceOf } from './chance.ts'
import { Clients } from './clients.ts'
import { Coverage } from './coverage.ts'
import type { Plant } from './plants.ts'
import { judge, reportOf, type SeedReport } from './run-seed.ts'
import type { SimulatedStore } from './simulated-store.ts'
import { Supervisor } from './supervisor.ts'
import { type EngineSeat, planOf, type Time, type World, worldOf } from './world.ts'

/**
 * A run on a real engine, in real time: the same people, agents, tools, deaths and laws as in virtual time. The seed
 * decides what is said and done; the machine decides the order, so a run cannot be repeated exactly.
 */
export interface RealRun {
  readonly seed: number
  readonly coverage?: Coverage
  readonly plant?: Plant | undefined
  readonly stored: SimulatedStore
  /** Gives a runtime that begins its place at the engine. */
  readonly join: (lane: Lane) => Promise<EngineSeat>
}

/** Two runtimes at a time, so that the engine can choose. */
const NODES = 2
/** A virtual wait is this much shorter in real time. */
const FASTER = 20
const LONGEST_WAIT_MS = 1_500
const LONGEST_RUN_MS = 180_000
const TICK_MS = 5
/** Wake-ups farther in the future than this are deadlines of people, for whom nobody waits. */
const SOON_MS = 20_000

export async function runInRealTime({
  seed,
  coverage = new Coverage(),
  plant,
  stored,
  join,
}: RealRun): Promise<SeedReport> {
  const chance = chanceOf(seed)
  // Who reads along needs the link between nodes; the kill tests have readers.
  const plan = { ...planOf(seed, chance), hasReader: false }
  const lanes = new RealLanes(chance.random)
  const time: Time = {
    timers: systemTimers(),
    scheduler: { lane: (name) => lanes.open(name), quiet: async () => {} },
    scaled: (virtualMs) => Math.min(virtualMs / FASTER, LONGEST_WAIT_MS),
    nodes: NODES,
    join,
  }
  const world = worldOf({ seed, plant, chance, plan, clock: systemClock, stored, time })
  const supervisor = new Supervisor(world, coverage)
  const clients = new Clients(world, supervisor, coverage)
  const ticking = setInterval(() => {
    supervisor.step++
    supervisor.disturb()
  }, TICK_MS)
  try {
    await play(world, supervisor, clients)
    clearInterval(ticking)
    await judge(world, supervisor, clients)
  } finally {
    clearInterval(ticking)
    supervisor.end()
    lanes.bury()
    await supervisor.bury()
    await stored.remove()
  }
  return reportOf(world)
}

async function play(world: World, supervisor: Supervisor, clients: Clients): Promise<void> {
  const until = performance.now() + LONGEST_RUN_MS
  for (let count = 0; count < NODES; count++) await supervisor.boot()
  const failed = (error: unknown): void =>
    world.violate(`The simulation failed: ${error instanceof Error ? error.stack : String(error)}`)
  let isTalking = true
  void clients
    .run()
    .catch(failed)
    .finally(() => (isTalking = false))
  for (let quietRounds = 0; world.violations.length === 0; await pass(20)) {
    const left = await workLeft(world)
    if (performance.now() > until)
      return world.violate(`The run came to no end. Left: ${left.all.join('; ')}`)
    if (isTalking || !supervisor.isUp || left.isDue) quietRounds = 0
    else if (await clients.settle()) quietRounds = 0
    else if (!left.isSoon && ++quietRounds > 2) {
      if (!(await supervisor.retire())) return
      quietRounds = 0
    }
  }
}

/** Whether somebody works or should work, now or soon. */
async function workLeft({ stored, clock }: World): Promise<{
  readonly isDue: boolean
  readonly isSoon: boolean
  readonly all: readonly string[]
}> {
  const heads = await stored.store.list({ sort: 'oldest', limit: 1000 })
  const now = clock.now()
  // A runtime may die with a lease of a thread that has nothing to do: then nobody has to come.
  const isHeld = ({ lease }: ThreadHead): boolean => lease !== null && lease.until > now
  const busy = heads.filter((head) => isHeld(head) || head.wakeAt !== null)
  return {
    isDue: busy.some((head) => isHeld(head) || head.wakeAt! <= now),
    isSoon: busy.some(({ wakeAt }) => wakeAt !== null && wakeAt <= now + SOON_MS),
    all: busy.map(
      ({ id, agent, lifecycle, lease, wakeAt }) =>
        `${id} (${agent}) is ${lifecycle}, held by ${lease?.owner}, due in ${(wakeAt ?? NaN) - now} ms`,
    ),
  }
}

const pass = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/**
 * Lanes in real time: turns come after a moment that chance decides, and what is performed in all lanes is performed
 * one after the other, so that the trace has the order of the commits.
 */
class RealLanes {
  readonly #random: () => number
  readonly #lanes: RealLane[] = []
  #last: Promise<unknown> = Promise.resolve()

  constructor(random: () => number) {
    this.#random = random
  }

  open(name: string): Lane {
    const inLine = <T>(work: () => Promise<T>): Promise<T> => {
      const result = this.#last.then(work)
      this.#last = result.catch(() => {})
      return result
    }
    const lane = new RealLane(name, inLine, () => pass(this.#random() * 3))
    this.#lanes.push(lane)
    return lane
  }

  /** Lets everything fail that waits in a dead lane, so that it can be cleaned up. */
  bury(): void {
    for (const lane of this.#lanes) lane.bury()
  }
}

class RealLane implements Lane {
  readonly name: string
  readonly #inLine: <T>(work: () => Promise<T>) => Promise<T>
  readonly #moment: () => Promise<void>
  readonly #buried: Promise<never>
  readonly #thawed: (() => void)[] = []
  #bury: (error: Error) => void = () => {}
  #state: LaneState = 'running'

  constructor(
    name: string,
    inLine: <T>(work: () => Promise<T>) => Promise<T>,
    moment: () => Promise<void>,
  ) {
    this.name = name
    this.#inLine = inLine
    this.#moment = moment
    this.#buried = new Promise((_, reject) => (this.#bury = reject))
    this.#buried.catch(() => {})
  }

  get state(): LaneState {
    return this.#state
  }

  async turn(_label: string, signal?: AbortSignal): Promise<void> {
    await this.#moment()
    if (signal?.aborted) return
    const aborted =
      signal && new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    await Promise.race([this.#able(), ...(aborted ? [aborted] : [])])
  }

  async perform<T>(_label: string, work: () => Promise<T>): Promise<T> {
    for (;;) {
      await this.#moment()
      await this.#able()
      try {
        const value = await this.#inLine(async () => {
          if (this.#state !== 'running') throw new NotNowError()
          return work()
        })
        return this.#state === 'dead' ? await this.#buried : value
      } catch (error) {
        if (this.#state === 'dead') return this.#buried
        if (!(error instanceof NotNowError)) throw error
      }
    }
  }

  freeze(): void {
    if (this.#state === 'running') this.#state = 'frozen'
  }

  thaw(): void {
    if (this.#state !== 'frozen') return
    this.#state = 'running'
    for (const resolve of this.#thawed.splice(0)) resolve()
  }

  kill(): void {
    this.#state = 'dead'
    this.#thawed.length = 0
  }

  bury(): void {
    this.kill()
    this.#bury(new Error(`${this.name} is dead.`))
  }

  /** Resolves while the lane runs, otherwise when it is thawed; never when it is dead. */
  async #able(): Promise<void> {
    if (this.#state === 'dead') return this.#buried
    if (this.#state === 'frozen')
      await Promise.race([new Promise<void>((resolve) => this.#thawed.push(resolve)), this.#buried])
  }
}
