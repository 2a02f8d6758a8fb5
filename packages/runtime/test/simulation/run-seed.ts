import { setTimeout as pass } from 'node:timers/promises'
import { messageOf } from '@skein/base'
import { Clients } from './clients.ts'
import { Coverage } from './coverage.ts'
import { unwatchFolds, watchFolds } from './invariants/folds.ts'
import { checkInvariants } from './invariants/index.ts'
import type { Plant } from './plants.ts'
import { Supervisor } from './supervisor.ts'
import { useVirtualTimeouts } from './virtual-globals.ts'
import {
  createWorld,
  type OpenStore,
  type TraceLine,
  type VirtualTime,
  type World,
} from './world.ts'

export interface SeedReport {
  readonly seed: number
  readonly violations: readonly string[]
  readonly trace: readonly TraceLine[]
  readonly commits: number
}

export interface SeedOptions {
  readonly plant?: Plant | undefined
  readonly coverage?: Coverage
  readonly open?: OpenStore | undefined
}

const MAX_STEPS = 20_000
/** How often a run in which nothing can happen waits in real time for other threads. */
const MOST_WAITS = 300

/** One run that the seed decides: who says what, what happens when, where processes die. */
export async function runSeed(
  seed: number,
  { plant, coverage = new Coverage(), open }: SeedOptions = {},
): Promise<SeedReport> {
  const world = await createWorld({ seed, plant, open })
  const supervisor = new Supervisor(world, coverage)
  const clients = new Clients(world, supervisor, coverage)
  if (seed % 3 === 0) watchFolds()
  // A database server answers in real time, and so does its driver.
  const restore = open ? undefined : useVirtualTimeouts(world.time.timers)
  try {
    await play(world, supervisor, clients)
    await judge(world, supervisor, clients)
  } finally {
    restore?.()
    unwatchFolds()
    supervisor.end()
    await world.stored.remove()
  }
  return reportOf(world)
}

/** Checks what must be true of a run that is over, unless it was broken off. */
export async function judge(world: World, supervisor: Supervisor, clients: Clients): Promise<void> {
  await clients.reader?.finish(clients.roots[0]!)
  try {
    if (world.plan.hasSecrets && world.violations.length === 0) await clients.exportAll()
    if (world.violations.length === 0) await checkInvariants(world, clients)
  } catch (error) {
    world.violate(`What is left cannot be read: ${messageOf(error)}`)
  }
}

export function reportOf({ seed, violations, trace }: World): SeedReport {
  return { seed, violations, trace, commits: trace.filter(({ commit }) => commit).length }
}

async function play(
  world: World & { readonly time: VirtualTime },
  supervisor: Supervisor,
  clients: Clients,
): Promise<void> {
  const {
    chance,
    time: { scheduler, timers },
  } = world
  const background = new Background(world)
  background.run(() => supervisor.boot())
  background.run(() => clients.run())
  let mayEnd = false
  let waits = 0
  while (world.violations.length === 0) {
    if (++supervisor.step > MAX_STEPS) return world.violate('The run came to no end.')
    supervisor.disturb()
    if (chance.happens(0.01)) await timers.advance(chance.pick([1, 50, 1_500]))
    if (await scheduler.step()) {
      waits = 0
      mayEnd = false
      continue
    }
    const isStill = background.isIdle && supervisor.isUp
    if (isStill && (chance.happens(0.5) || timers.pending().length === 0)) {
      if (mayEnd && timers.pending().length === 0 && !(await supervisor.retire())) return
      background.run(async () => void (mayEnd = !(await clients.settle())))
    } else if (await timers.advanceToNext()) mayEnd = false
    // Signatures and files are made in other threads, which a busy machine lets wait.
    else if (waits++ < MOST_WAITS) await pass(10)
    else return world.violate('Somebody waits for ever.')
  }
}

/** What goes on beside the scheduler. */
class Background {
  readonly #world: World
  #running = 0

  constructor(world: World) {
    this.#world = world
  }

  get isIdle(): boolean {
    return this.#running === 0
  }

  run(work: () => Promise<void>): void {
    this.#running++
    work()
      .catch((error: unknown) =>
        this.#world.violate(
          `The simulation failed: ${error instanceof Error ? error.stack : String(error)}`,
        ),
      )
      .finally(() => this.#running--)
  }
}
