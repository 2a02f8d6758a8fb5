import { SkeinError } from '@skein/base'
import { createRegistry, createRuntime, type Commit, type EmbeddedRuntime } from '@skein/runtime'
import {
  type Lane,
  crashStore,
  NotNowError,
  type CommitOutcome,
  type CrashMoment,
} from '../../src/testing/simulation.ts'
import type { Timers } from '../../src/dispatch/dispatcher.ts'
import { watchCommit, type CommitWatch } from './commit-watch.ts'
import type { Coverage } from './coverage.ts'
import { spendingRules } from './laws-limits.ts'
import { MAX_HANDOFFS } from './laws-order.ts'
import { simulatedAgents } from './simulated-agents.ts'
import type { EngineSeat, World } from './world.ts'

interface Incarnation {
  readonly lane: Lane
  /** Its place at the engine, if there is one. */
  readonly seat: EngineSeat | undefined
  readonly runtime: EmbeddedRuntime
  readonly registry: EmbeddedRuntime['registry']
  readonly died: Promise<void>
  readonly die: () => void
}

/** Points that few runs pass: a crash is tried at once. */
const COMMON = new Set([
  'answer',
  'call_end',
  'call_start',
  'send_message',
  'session_end',
  'session_start',
  'step_end',
  'turn_end',
  'call_waits',
  'create_thread',
  'activate',
  'step_start',
  'take_queue',
])

/** Points that hardly any run passes: the process dies at the first pass, whatever the plan says. */
const RARE = new Set(['undo_decided'])

/** Starts runtimes on one store, one after the other, or several at a time, and lets them die. */
export class Supervisor {
  /** The points of `RARE` at which a process of this run has died. */
  readonly #rarelyDied = new Set<string>()
  readonly #world: World
  readonly #coverage: Coverage
  readonly #watch: CommitWatch
  readonly #zombies: Incarnation[] = []
  #crashesLeft: number
  #mustCrash = true
  #generation = 0
  /** Those that run and are not given up. */
  readonly #live: Incarnation[] = []
  /** All that ever ran. */
  readonly #all: Incarnation[] = []
  /** Starts that nobody waits for. */
  readonly #starting = new Set<Promise<void>>()
  #hasEnded = false
  #waiters: (() => void)[] = []
  step = 0

  constructor(world: World, coverage: Coverage) {
    this.#world = world
    this.#coverage = coverage
    this.#watch = watchCommit(world)
    this.#crashesLeft = world.plan.crashes
    world.mayCrash = (commit) => {
      const [current] = this.#live
      if (this.#crashesLeft === 0 || !current || !world.chance.happens(0.3)) return
      this.#crashesLeft--
      this.#crash(current.lane, 'after', commit)
      throw new NotNowError()
    }
  }

  get isUp(): boolean {
    return this.#live.length === this.#world.time.nodes
  }

  async boot(): Promise<void> {
    const world = this.#world
    const lane = world.time.scheduler.lane(`runtime ${++this.#generation}`)
    const registry = createRegistry(simulatedAgents(world, lane))
    let die = (): void => {}
    const died = new Promise<void>((resolve) => (die = resolve))
    const store = await world.openStore()
    const seat = await world.time.join?.(lane)
    const runtime = await createRuntime({
      registry,
      store: crashStore(store, {
        lane,
        crashAt: (commit) => this.#crashAt(lane, commit),
        onCrash: (moment, commit) => this.#crash(lane, moment, commit),
        onClaim: (threadId, claim) =>
          claim && 'epoch' in claim && this.#watch.claimed(threadId, claim.epoch),
        onCommit: (commit, outcome) => this.#committed(lane, commit, outcome),
      }),
      clock: world.clock,
      timers: timersOf(world, lane),
      ids: world.ids,
      owner: lane.name,
      keys: world.keys,
      secretKey: world.secretKey,
      limits: {
        drainAttempts: 4,
        modelBackoffMs: world.time.scaled(1_000),
        maxHandoffs: MAX_HANDOFFS,
        stopGraceMs: world.time.scaled(5_000),
        ...(seat && { leaseMs: 1_500 }),
      },
      ...(seat && { dispatcher: seat.dispatcher }),
      onError: (error) => lane.state !== 'dead' && this.#onError(error),
      // Old counters are removed at the start only: a timer that rings for ever would let no run end.
      ...(world.plan.hasLimits && {
        spending: spendingRules(world),
        retention: { rules: [], everyMs: Infinity },
      }),
    })
    const incarnation = { lane, seat, runtime, registry, died, die }
    this.#all.push(incarnation)
    if (this.#hasEnded) return kill(incarnation)
    this.#live.push(incarnation)
    try {
      await runtime.start()
    } catch (error) {
      // It died while it started: another one was started for it, or the run is over.
      if (lane.state !== 'dead') throw error
    }
    for (const wake of this.#waiters.splice(0)) wake()
  }

  /** Does something with the runtime; when it dies meanwhile, again with the next one. */
  async call<T>(work: (runtime: EmbeddedRuntime) => Promise<T>): Promise<T> {
    for (;;) {
      const current = await this.up()
      const ended = await Promise.race([
        work(current.runtime).then(
          (value) => ({ value }),
          (error: unknown) => ({ error }),
        ),
        current.died.then(() => 'died' as const),
      ])
      if (ended === 'died') continue
      if ('error' in ended) throw ended.error
      return ended.value
    }
  }

  /** One of those that run; waits until there is one. */
  async up(): Promise<Incarnation> {
    while (this.#live.length === 0)
      await new Promise<void>((resolve) => this.#waiters.push(resolve))
    return this.#live.length === 1 ? this.#live[0]! : this.#world.chance.pick(this.#live)
  }

  /** A runtime that was thought dead goes on for a while, and then dies for good. */
  disturb(): void {
    const { chance } = this.#world
    for (const zombie of this.#zombies) {
      const { lane } = zombie
      if (lane.state === 'frozen' && chance.happens(0.05)) lane.thaw()
      else if (lane.state === 'running' && chance.happens(0.05)) kill(zombie)
    }
    if (chance.happens(this.#world.plan.focus === 'await_agent' ? 0.03 : 0.0005)) this.#forget()
  }

  /** The definitions are reloaded without the agents, and a while later with them. */
  #forget(): void {
    const { chance, time } = this.#world
    const [current] = this.#live
    if (!current || current.runtime.registry.agents.size === 0) return
    current.runtime.replaceRegistry(createRegistry({ agents: [] }))
    const back = (): void => current.runtime.replaceRegistry(current.registry)
    time.timers.set(time.scaled(chance.pick([0, 10, 5_000, 100_000])), back)
  }

  /** Ends those that came back. True when there were any: then what they left is taken up by a last start. */
  async retire(): Promise<boolean> {
    const zombies = this.#zombies.splice(0)
    if (zombies.length === 0) return false
    const all = [...zombies, ...this.#live.splice(0)]
    for (const one of all) kill(one)
    for (let count = 0; count < this.#world.time.nodes; count++) await this.boot()
    return true
  }

  end(): void {
    this.#hasEnded = true
    for (const one of [...this.#zombies, ...this.#live]) kill(one)
  }

  /** Lets go of everything that runtimes hold in real time. They are dead. */
  async bury(): Promise<void> {
    const stop = ({ runtime }: Incarnation): Promise<void> => runtime.stop({ graceMs: 0 })
    const known = this.#all.length
    await Promise.all([...this.#all.map(stop), ...this.#starting])
    // Those that were being created when the run ended.
    await Promise.all(this.#all.slice(known).map(stop))
  }

  #crashAt(lane: Lane, { point }: Commit): CrashMoment | undefined {
    const { chance, plan } = this.#world
    if (!this.#live.some((one) => one.lane === lane)) return undefined
    const isFocus = point === plan.focus || point.split('+').includes(plan.focus ?? '')
    if (isFocus && this.#mustCrash) {
      this.#mustCrash = false
      return chance.pick(['before', 'after'])
    }
    if (RARE.has(point) && !this.#rarelyDied.has(point)) {
      this.#rarelyDied.add(point)
      return chance.pick(['before', 'after'])
    }
    if (this.#crashesLeft === 0 || !chance.happens(this.#probability(point))) return undefined
    this.#crashesLeft--
    return plan.focus === 'fail_stuck' ? 'before' : chance.pick(['before', 'after'])
  }

  #probability(point: string): number {
    if (this.#world.plan.focus === 'fail_stuck')
      return point === 'create_thread' || point === 'quarantined' ? 0 : 0.9
    if (point === 'park') return 0.3
    return point.split('+').some((one) => COMMON.has(one)) ? 0.04 : 0.35
  }

  #crash(lane: Lane, moment: CrashMoment, commit: Commit): void {
    const { chance, plan, time } = this.#world
    const place = this.#live.findIndex((one) => one.lane === lane)
    const [current] = place < 0 ? [] : this.#live.splice(place, 1)
    if (!current) return
    this.#coverage.crash(commit.point, moment)
    this.#note(lane, { what: `CRASH ${moment} ${commit.point}`, crash: moment })
    if (plan.hasZombies && chance.happens(0.6)) {
      lane.freeze()
      this.#zombies.push(current)
    } else kill(current)
    current.die()
    const rest = time.scaled(chance.pick([0, 0, 10, 5_000, 3_600_000]))
    time.timers.set(rest, () => this.#bootAgain())
  }

  /** Starts a runtime for one that died, unless the run is over. */
  #bootAgain(): void {
    if (this.#hasEnded) return
    const starting = this.boot()
      .catch((error: unknown) => {
        const text = error instanceof Error ? error.stack : String(error)
        if (!this.#hasEnded) this.#world.violate(`A runtime did not start: ${text}`)
      })
      .finally(() => this.#starting.delete(starting))
    this.#starting.add(starting)
  }

  #committed(lane: Lane, commit: Commit, outcome: CommitOutcome): void {
    this.#coverage.pass(commit.point)
    const { type } = outcome
    const code = type === 'refused' && SkeinError.is(outcome.error) ? ` ${outcome.error.code}` : ''
    this.#note(lane, { what: `commit ${commit.point}${code}`, commit, outcome: type })
    if (outcome.type === 'refused') return this.#watch.refused(commit, outcome.error)
    this.#watch.written(commit, outcome.seqs)
    const [own] = commit.threads
    if (own) for (const point of commit.point.split('+')) this.#world.reach(point, own.id, lane)
  }

  /** Lets the process of a lane die now, in the middle of what it does. */
  strike(lane: Lane): boolean {
    if (!this.#live.some((one) => one.lane === lane)) return false
    this.#crash(lane, 'after', { point: 'call', threads: [] })
    return true
  }

  /** Stops a runtime as an operator does: it gets some time to end its work, and another one is started. */
  async retireGently(lane: Lane): Promise<void> {
    const { chance, time } = this.#world
    const place = this.#live.findIndex((one) => one.lane === lane)
    const [current] = place < 0 ? [] : this.#live.splice(place, 1)
    if (!current) return
    this.#note(lane, { what: 'SHUTDOWN' })
    await Promise.race([
      current.runtime.stop({ graceMs: time.scaled(chance.pick([0, 1_000, 10_000])) }),
      current.died,
    ])
    kill(current)
    current.die()
    this.#bootAgain()
  }

  #note(lane: Lane, line: Omit<World['trace'][number], 'step' | 'time' | 'lane'>): void {
    const time = this.#world.clock.now()
    this.#world.trace.push({ step: this.step, time, lane: lane.name, ...line })
  }

  #onError(error: unknown): void {
    const text =
      error instanceof Error
        ? `${error.name}: ${error.message}\n${error.stack ?? ''}`
        : String(error)
    this.#world.outputs.push({ where: 'onError', text })
    // A process died in an effect that must not run twice: that is what the operator has to be told. So is an
    // engine that does not answer in time; it is asked again.
    if (SkeinError.is(error) && TOLD.has(error.code)) return
    this.#world.violate(`A drain rejected: ${text}`)
  }
}

const TOLD: ReadonlySet<string> = new Set(['EFFECT_UNKNOWN', 'RESTATE_UNREACHABLE'])

function kill({ lane, seat }: Incarnation): void {
  lane.kill()
  seat?.die()
}

/** Rings reach a runtime only while it runs. */
function timersOf({ time: { timers } }: World, lane: Lane): Timers {
  return {
    now: () => timers.now(),
    set: (ms, callback) =>
      ms === Infinity ? undefined : timers.set(ms, () => lane.state === 'running' && callback()),
    clear: (handle) => timers.clear(handle),
  }
}
