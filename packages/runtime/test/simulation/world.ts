import { type Clock, manualClock, type ManualClock } from '@skein/base'
import type { LLMRequest } from '@skein/ai'
import {
  memoryGovernanceKeys,
  type Commit,
  type GovernanceKeys,
  type RuntimeOptions,
  type Store,
  type Timers,
} from '@skein/runtime'
import { manualTimers, type ManualTimers } from '@skein/runtime/testing'
import type { z } from 'zod'
import {
  seededScheduler,
  type CommitOutcome,
  type CrashMoment,
  type Lane,
  type SeededScheduler,
} from '../../src/testing/simulation.ts'
import { type Field, steadyFields } from '../schema-fields.ts'
import { canaryOf, type Canary } from './canary.ts'
import { chanceOf, type Chance } from './chance.ts'
import { joinedPoints, kernelPoints } from './commit-points.ts'
import { Ledger } from './ledger.ts'
import type { Plant } from './plants.ts'
import { openSimulatedStore, type SimulatedStore } from './simulated-store.ts'

/** What outlives every runtime of one run. */
export interface World {
  readonly seed: number
  readonly chance: Chance
  readonly time: Time
  readonly clock: Clock
  readonly ids: () => string
  /** The store itself, under all wrappers. */
  readonly stored: SimulatedStore
  /** The store of a runtime that begins, with a planted bug, if there is one. */
  readonly openStore: () => Promise<Store>
  readonly keys: GovernanceKeys
  readonly secretKey: Uint8Array
  readonly ledger: Ledger
  readonly canary: Canary
  readonly plan: Plan
  readonly trace: TraceLine[]
  /** Everything any model was asked. */
  readonly requests: LLMRequest[]
  /** Texts that left the runtime: errors, live events, exports. */
  readonly outputs: { readonly where: string; readonly text: string }[]
  readonly violations: string[]
  /** Fields that the schemas of all writes have, with what a model may send for them. */
  readonly fields: readonly Field<z.ZodType>[]
  /** Planted bugs of tools and effects. */
  readonly bugs: Set<ToolBug>
  /** Something happens in a call, or is committed: the moment to stop or cut its thread, or to let the process die. */
  reach: (moment: string, threadId: string, lane: Lane) => void
  /** Of the supervisor, for planted bugs that have a commit point more. */
  mayCrash: (commit: Commit) => void
  violate(what: string): void
}

/** The time of a run, and the order in which things happen in it: virtual, or real with an engine (real-time.ts). */
export interface Time {
  /** What runtimes are given. */
  readonly timers: Timers
  readonly scheduler: Pick<SeededScheduler, 'lane' | 'quiet'>
  /** How long something takes that takes so many virtual milliseconds. */
  readonly scaled: (virtualMs: number) => number
  /** How many runtimes run at the same time. */
  readonly nodes: number
  /** Gives a runtime that begins its dispatcher. Default: the one of the process. */
  readonly join?: (lane: Lane) => Promise<EngineSeat>
}

/** What a runtime has of an engine. */
export interface EngineSeat {
  readonly dispatcher: NonNullable<RuntimeOptions['dispatcher']>
  /** Cuts the runtime off from the engine, as the death of its process does. */
  die(): void
}

/** What the seed decided beforehand. */
export interface Plan {
  readonly roots: readonly RootAgent[]
  /** The commit point at which a process surely dies, once. */
  readonly focus: string | undefined
  readonly messages: number
  readonly crashes: number
  /** A runtime that was given up comes back while its successor works. */
  readonly hasZombies: boolean
  readonly hasSecrets: boolean
  readonly hasReader: boolean
  readonly store: 'memory' | 'sqlite' | 'file'
  /** How likely stops, edits and the like are. */
  readonly unrest: number
  /** Spending is limited, and agents have a tool that counts in a value of their user. */
  readonly hasLimits: boolean
  /** People make standing grants for payments, and revoke some. */
  readonly hasGrants: boolean
  /** Writes take long, some longer than their time limit and the grace after it. */
  readonly hasSlowCalls: boolean
  /** How often a thread is stopped, cut or terminated at some point of a call, or the process dies there. */
  readonly strikes: number
}

/** What a planted bug makes of tools and effects. */
export type ToolBug =
  /** They must not run twice, and declare that they may. */
  | 'repeatable writes'
  | 'repeatable effects'
  /** They write, and declare that they only read. */
  | 'writes that only read'
  /** Their arguments are parsed once more after the gate. */
  | 'parsed again'
  /** A call counts as done as soon as it is asked to stop. */
  | 'done when stopped'
  /** A call that was asked to stop is made again. */
  | 'again after a stop'

export const ROOT_AGENTS = [
  'desk',
  'boss',
  'duo',
  'guarded',
  'talker',
  'treasurer',
  'former',
  'bot',
  'steward',
] as const
export type RootAgent = (typeof ROOT_AGENTS)[number]

export interface TraceLine {
  readonly step: number
  readonly time: number
  readonly lane: string
  readonly what: string
  readonly commit?: Commit
  readonly outcome?: CommitOutcome['type']
  readonly crash?: CrashMoment
}

export interface WorldOptions {
  readonly seed: number
  readonly plant?: Plant | undefined
  /** Opens the store of the run. Default: the kind that the plan names. */
  readonly open?: OpenStore | undefined
}

/** Opens a store whose clock is that of the world. */
export type OpenStore = (clock: ManualClock, seed: number) => Promise<SimulatedStore>

/** Time that goes on only when nothing else can happen. */
export interface VirtualTime extends Time {
  readonly timers: ManualTimers
  readonly scheduler: SeededScheduler
}

/** Creates the world of a run in virtual time. */
export async function createWorld({
  seed,
  plant,
  open,
}: WorldOptions): Promise<World & { readonly time: VirtualTime }> {
  const chance = chanceOf(seed)
  const drawnPlan = planOf(seed, chance)
  // Time limits are virtual only where the store needs no real time.
  const plan = open ? { ...drawnPlan, hasSlowCalls: false } : drawnPlan
  const clock = manualClock(Date.UTC(2026, 0, 1))
  const stored = open ? await open(clock, seed) : openSimulatedStore(plan.store, clock)
  const time: VirtualTime = {
    timers: manualTimers(clock),
    scheduler: seededScheduler({ random: chance.random, settled: stored.settled }),
    scaled: (virtualMs) => virtualMs,
    nodes: 1,
  }
  return worldOf({ seed, plant, chance, plan, clock, stored, time })
}

/** Creates a world whose time and store are given. */
export function worldOf<T extends Time>(
  parts: Pick<World, 'seed' | 'chance' | 'plan' | 'clock' | 'stored'> & {
    readonly time: T
    readonly plant?: Plant | undefined
  },
): World & { readonly time: T } {
  const { seed, chance, plan, clock, stored, time, plant } = parts
  const trace: TraceLine[] = []
  const violations: string[] = []
  const canary = canaryOf(chance)
  let count = 0
  const bugs = new Set<ToolBug>()
  const planted = (store: Store): Store =>
    plant
      ? plant(store, {
          chance,
          canary,
          mayCrash: (commit) => world.mayCrash(commit),
          spoilTools: (bug) => void bugs.add(bug),
        })
      : store
  const shared = planted(stored.store)
  const world: World & { readonly time: T } = {
    seed,
    chance,
    clock,
    time,
    ids: () => `00000000-0000-7000-8000-${String(++count).padStart(12, '0')}`,
    stored,
    openStore: async () => (stored.another ? planted(await stored.another()) : shared),
    mayCrash: () => {},
    fields: fieldsOf(seed),
    bugs,
    reach: () => {},
    keys: memoryGovernanceKeys({ seed: 'simulation' }),
    secretKey: new Uint8Array(32).fill(7),
    ledger: new Ledger(),
    canary,
    plan,
    trace,
    requests: [],
    outputs: [],
    violations,
    violate: (what) => void violations.push(what),
  }
  return world
}

const points = [...kernelPoints(), ...joinedPoints]

/** Who passes a rare point. */
const ROOTS_OF: Readonly<Record<string, readonly RootAgent[]>> = {
  boot_child: ['boss'],
  cascade: ['desk', 'boss'],
  undo: ['guarded', 'steward', 'treasurer'],
  repair: ['guarded'],
  handoff: ['desk'],
  handler_end: ['bot'],
  compact: ['talker'],
  compaction_failed: ['talker'],
  effect_start: ['talker'],
  effect_end: ['talker'],
  effect_waits: ['talker'],
  output_refused: ['former'],
  partial_answer: ['talker', 'desk'],
  turn_cut: ['desk', 'treasurer', 'duo', 'talker'],
  hook_after_thread_created: ['desk'],
}

const RESTLESS = new Set(['cascade', 'partial_answer', 'nudge', 'stop_thread'])

/** Lets a part of the runs have limits. Two threads of one user then share them. */
function withLimits<P extends Pick<Plan, 'roots'>>(
  plan: P,
  chance: Chance,
): P & Pick<Plan, 'hasLimits'> {
  const hasLimits = chance.happens(0.25)
  const [first] = plan.roots
  return { ...plan, hasLimits, roots: hasLimits ? [first!, first!] : plan.roots }
}

/** The agents whose payments a person has to approve. */
const PAYING: ReadonlySet<string> = new Set<RootAgent>(['guarded', 'treasurer', 'steward'])

function withGrants(
  plan: Omit<Plan, 'hasGrants' | 'hasSlowCalls' | 'strikes'>,
  chance: Chance,
): Omit<Plan, 'hasSlowCalls' | 'strikes'> {
  const hasGrants = plan.roots.some((root) => PAYING.has(root)) && chance.happens(0.6)
  return { ...plan, hasGrants }
}

/** What a seed decides beforehand. `chance` is that of the run, which goes on from there. */
export function planOf(seed: number, chance: Chance = chanceOf(seed)): Plan {
  const plan = withLimits(drawn(chance), chanceOf(seed ^ 0x11_1175))
  return withStrikes(withGrants(plan, chanceOf(seed ^ 0x6a_4a57)), chanceOf(seed ^ 0x57_121e))
}

function withStrikes(plan: Omit<Plan, 'hasSlowCalls' | 'strikes'>, chance: Chance): Plan {
  return { ...plan, hasSlowCalls: chance.happens(0.5), strikes: chance.pick([0, 0, 1, 2, 4]) }
}

/** The fields of a run: their schemas make the same of a value whenever they parse it. */
function fieldsOf(seed: number): World['fields'] {
  const chance = chanceOf(seed ^ 0xf1_e1d5)
  const count = chance.between(0, 2)
  return Array.from({ length: count }, () => chance.pick(steadyFields)())
}

function drawn(chance: Chance): Omit<Plan, 'hasLimits' | 'hasGrants' | 'hasSlowCalls' | 'strikes'> {
  const focus = chance.happens(0.5) ? chance.pick(points) : undefined
  const agents = ROOTS_OF[focus ?? ''] ?? ROOT_AGENTS
  const roots = Array.from({ length: chance.happens(0.15) ? 2 : 1 }, () => chance.pick(agents))
  const hasZombies = chance.happens(0.25)
  return {
    roots,
    focus,
    messages: chance.between(1, 4),
    crashes: focus === 'fail_stuck' ? 14 : chance.pick([0, 1, 1, 2, 2, 3, 5, 8]),
    hasZombies,
    hasSecrets: chance.happens(0.4),
    // A bus tells what its own process does; two processes on one store are not meant to be.
    hasReader: !hasZombies && chance.happens(0.3),
    store: chance.happens(0.93) ? 'memory' : chance.happens(0.8) ? 'sqlite' : 'file',
    unrest: RESTLESS.has(focus ?? '') ? 0.9 : chance.pick([0, 0.1, 0.3]),
  }
}
