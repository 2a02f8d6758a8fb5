import { onTestFinished } from 'vitest'
import { manualClock, type ManualClock } from '@skein/base'
import {
  createRuntime,
  memoryStore,
  type EmbeddedRuntime,
  type RuntimeEvent,
  type RuntimeOptions,
  type SendMessage,
  type SessionResult,
  type Store,
} from '@skein/runtime'
import { manualTimers, type ManualTimers } from '@skein/runtime/testing'
import { latch } from './latch.ts'

/** A runtime in virtual time, on a store in memory unless `simulateOn` says otherwise, with ids that count. */
export interface Simulation {
  readonly runtime: EmbeddedRuntime
  readonly threads: EmbeddedRuntime['threads']
  readonly store: Store
  readonly timers: ManualTimers
  readonly clock: ManualClock
  /** Drains that rejected. `idle`, `run` and `advance` reject with the first of them. */
  readonly errors: readonly unknown[]
  /** Creates a thread of the agent, by default the first one, and gives its id. */
  create(thread?: Partial<Parameters<EmbeddedRuntime['threads']['create']>[0]>): Promise<string>
  /** Creates a thread of the first agent and runs one message. */
  ask(message: SendMessage | string): Promise<SessionResult & { readonly id: string }>
  run(threadId: string, message: SendMessage | string): Promise<SessionResult>
  send(threadId: string, message: SendMessage | string): Promise<string>
  /** Resolves when nothing runs and nothing is due. */
  idle(): Promise<void>
  /** Moves time on, and waits until what came due is done. */
  advance(ms: number): Promise<void>
  /** Events of one type in the log of a thread, in order. */
  events<Type extends RuntimeEvent['type']>(
    threadId: string,
    type: Type,
  ): Promise<Extract<RuntimeEvent, { type: Type }>[]>
  /** Types of all events of a thread, in order. */
  eventTypes(threadId: string): Promise<RuntimeEvent['type'][]>
  /** Stops this runtime and starts another one on the same store, clock and ids. */
  restart(changes?: Partial<SimulationOptions>): Promise<Simulation>
  stop(): Promise<void>
}

export interface SimulationOptions extends Omit<RuntimeOptions, 'clock' | 'timers' | 'ids'> {
  /** False leaves it to the test to start the runtime. */
  readonly starts?: boolean
}

/** What outlives a runtime. */
interface World {
  readonly store: Store
  readonly clock: ManualClock
  readonly timers: ManualTimers
  readonly ids: () => string
}

/** The store of a simulation, with the keys that a lasting store needs, and the dispatcher if it is not the default. */
interface Ground extends Pick<RuntimeOptions, 'keys' | 'secretKey' | 'dispatcher'> {
  readonly store: Store
  /** Resolves when the store has answered everything. Time does not pass until then. */
  readonly settled?: () => Promise<void>
}

let openGround = async (): Promise<Ground> => ({ store: memoryStore() })

/** Lets the tests of this file run on another kind of store. */
export function simulateOn(open: () => Promise<Ground>): void {
  openGround = open
}

/** Makes a runtime for a test and starts it. It is stopped when the test is over. */
export async function simulate(options: SimulationOptions): Promise<Simulation> {
  const clock = manualClock(Date.UTC(2026, 0, 1))
  const ground: Ground = options.store ? { store: options.store } : await openGround()
  const { store, settled, ...keys } = ground
  const timers = settled ? patientTimers(manualTimers(clock), settled) : manualTimers(clock)
  return simulateIn({ clock, store, timers, ids: countedUuids() }, { ...keys, ...options })
}

async function simulateIn(world: World, options: SimulationOptions): Promise<Simulation> {
  const { starts = true, ...rest } = options
  const { store, clock, timers, ids } = world
  const errors: unknown[] = []
  const failed = latch<unknown>()
  const runtime = await createRuntime({
    ...rest,
    store: keptOpen(store),
    clock,
    timers,
    ids,
    onError(error) {
      errors.push(error)
      // A hook whose answer was passed over does not stop its thread.
      if ((error as { readonly code?: unknown }).code !== 'HOOK_ANSWER') failed.open(error)
    },
  })
  if (starts) await runtime.start()
  const { threads } = runtime
  const orFailed = <T>(work: Promise<T>): Promise<T> =>
    Promise.race([work, failed.reached.then((error) => Promise.reject(error))])
  let isRunning = true
  const first = () => [...runtime.registry.agents.keys()][0]!
  const simulation: Simulation = {
    runtime,
    threads,
    store,
    timers,
    clock,
    errors,
    create: async (thread = {}) => (await threads.create({ agent: first(), ...thread })).id,
    async ask(message) {
      const id = await simulation.create()
      return { ...(await simulation.run(id, message)), id }
    },
    run: (id, message) => orFailed(threads.run(id, message)),
    send: async (id, message) => (await threads.send(id, message)).messageId,
    idle: () => orFailed(runtime.idle()),
    async advance(ms) {
      await timers.advance(ms)
      await simulation.idle()
    },
    async events(id, type) {
      const stored = await threads.events(id)
      return stored.map(({ event }) => event).filter((event) => event.type === type) as never // compared
    },
    eventTypes: async (id) => (await threads.events(id)).map(({ event }) => event.type),
    async restart(changes = {}) {
      await simulation.stop()
      return simulateIn(world, { ...options, ...changes })
    },
    async stop() {
      isRunning = false
      await runtime.stop({ graceMs: 0 })
    },
  }
  onTestFinished(async () => {
    if (isRunning) await simulation.stop()
  })
  return simulation
}

/** Timers that ring one at a time, and wait for a store that answers in real time. */
function patientTimers(timers: ManualTimers, settled: () => Promise<void>): ManualTimers {
  return {
    ...timers,
    async advance(ms) {
      const until = timers.now() + ms
      for (let [at] = timers.pending(); at !== undefined && at <= until; [at] = timers.pending()) {
        await timers.advance(Math.max(at - timers.now(), 0))
        await settled()
      }
      await timers.advance(until - timers.now())
      await settled()
    },
  }
}

/** Returns the thread of a child, by its place among those that the thread has created. */
export async function childOf(it: Simulation, id: string, place = 0): Promise<string> {
  return (await it.events(id, 'subagent_created'))[place]!.reference
}

/** A runtime closes its store when it stops; the next one needs it. */
function keptOpen(store: Store): Store {
  return new Proxy(store, {
    get(target, name) {
      if (name === 'close') return async () => {}
      const member: unknown = Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

/** UUIDs that count: readable, and good enough for audit logs, which want UUIDs. */
function countedUuids(): () => string {
  let count = 0
  return () => `00000000-0000-7000-8000-${String(++count).padStart(12, '0')}`
}
