import { manualClock, type ManualClock } from '@skein/base'
import { calls, says, scripted } from '@skein/ai/testing'
import {
  createRuntime,
  defineAgent,
  definePrompt,
  defineTool,
  memoryGovernanceKeys,
  memoryStore,
  type AgentDefinition,
  type EmbeddedRuntime,
  type Store,
  type ThreadHead,
} from '@skein/runtime'
import { manualTimers, type ManualTimers } from '../../src/testing/index.ts'
import { seededScheduler, type Lane, crashStore } from '../../src/testing/simulation.ts'
import type { Timers } from '../../src/dispatch/dispatcher.ts'
import { chanceOf, type Chance } from './chance.ts'
import type { SimulatedStore } from './simulated-store.ts'
import type { OpenStore } from './world.ts'

/**
 * Two processes on one store: who may work on a thread, who is to blame when a process dies, and who gets the
 * next free place. Each run is of one kind:
 *
 * - `lease`: processes are killed from outside or sleep, and their clocks differ by up to an hour. No call may
 *   run twice at once, and only a lease that was released or has ended may be taken.
 * - `blame`: processes die of a tool and of nothing else. Whoever never kills is never charged and never fails.
 * - `fair`: a tenant with many threads, and one with one. It begins after one round of the many at most.
 */
export type BlameKind = 'lease' | 'blame' | 'fair'

/** A bug between a process and the store or its timers, to see that the laws find it. */
export interface BlamePlant {
  readonly kind: BlameKind
  /** What is said about it. */
  readonly finds: RegExp
  readonly store?: (
    store: Store,
    node: { readonly skewMs: number; readonly clock: ManualClock },
  ) => Store
  /** Whether a timer of this length rings an hour late. */
  readonly delays?: (ms: number) => boolean
}

/** No other timer is as long as two thirds of it. */
const LEASE_MS = 30_003
const PLACES = 4

export const blamePlants: Readonly<Record<string, BlamePlant>> = {
  /** A claim always wins, as before there were leases. */
  'claim-wins': {
    kind: 'lease',
    finds: /has not ended|runs in/,
    store: (store) =>
      overriding(store, {
        claim: async (id, options) => {
          const lease = (await store.head(id))?.lease
          if (lease && lease.owner !== options.owner) await store.release(lease.owner, [id])
          return store.claim(id, options)
        },
      }),
  },
  /** The clock of the process that claims decides when a lease ends. */
  'own-clock': {
    kind: 'lease',
    finds: /has not ended|runs in/,
    store: (store, { skewMs, clock }) =>
      overriding(store, {
        claim: async (id, options) => {
          const lease = (await store.head(id))?.lease
          const isOver = lease && lease.until <= clock.now() + skewMs
          if (isOver && lease.owner !== options.owner) await store.release(lease.owner, [id])
          return store.claim(id, options)
        },
      }),
  },
  /** Leases are never renewed, and the process believes they were. */
  'no-renewal': {
    kind: 'lease',
    finds: /has not ended|runs in/,
    store: (store) => overriding(store, { renew: async (ids) => ids }),
  },
  /** A process does not give up its calls when it cannot renew in time. */
  'no-abort': { kind: 'lease', finds: /runs in/, delays: (ms) => ms === (LEASE_MS * 2) / 3 },
  /** Every death is charged, whoever was open. */
  'charge-all': {
    kind: 'blame',
    finds: /charged|failed/,
    store: (store) =>
      overriding(store, {
        claim: async (id, options) => {
          const claim = await store.claim(id, options)
          if (!claim || 'heldBy' in claim || (claim.head.lease?.deaths ?? 0) === 0) return claim
          const attempts = claim.head.attempts + 1
          await store.commit({ point: 'plant', threads: [{ id, head: { attempts } }] })
          return { ...claim, head: { ...claim.head, attempts } }
        },
      }),
  },
  /** Suspects are not taken up one at a time, and all are on trial. */
  'trial-beside': {
    kind: 'blame',
    finds: /charged|failed/,
    store: (store) =>
      overriding(store, {
        claim: async (id, options) => {
          const claim = await store.claim(id, options)
          if (!claim || 'heldBy' in claim || (claim.head.lease?.deaths ?? 0) === 0) return claim
          const { epoch: fence, head } = claim
          await store.commit({ point: 'plant', threads: [{ id, fence, lease: 'quarantined' }] })
          return { ...claim, head: { ...head, lease: { ...head.lease!, deaths: 0 } } }
        },
      }),
  },
  /** Threads are taken in the order of their arrival. */
  'one-queue': {
    kind: 'fair',
    finds: /waits while/,
    store: (store) =>
      overriding(store, {
        head: async (id) => {
          const head = await store.head(id)
          return head && { ...head, tenant: 'everybody' }
        },
      }),
  },
}

function overriding(store: Store, methods: Partial<Store>): Store {
  return new Proxy(store, {
    get(target, name) {
      const member: unknown = Reflect.get(methods, name) ?? Reflect.get(target, name)
      return typeof member === 'function' ? member.bind(target) : member
    },
  })
}

/** One process: it lives, sleeps, dies and is started again under another name. */
interface Node {
  readonly name: string
  readonly skewMs: number
  lane: Lane
  runtime: EmbeddedRuntime | undefined
  owner: string
  /** Timers that should have rung while the process slept. */
  late: (() => void)[]
}

interface Run {
  readonly key: string
  readonly node: Node
  readonly lane: Lane
  readonly signal: AbortSignal | undefined
}

export interface BlameReport {
  readonly violations: readonly string[]
  readonly deaths: number
  readonly charges: number
}

const MAX_STEPS = 30_000

export interface BlameOptions {
  readonly plant?: BlamePlant | undefined
  /** Opens the store that the processes share. Default: one in memory. */
  readonly open?: OpenStore | undefined
}

export async function runBlameSeed(
  seed: number,
  kind: BlameKind,
  { plant, open = inMemory }: BlameOptions = {},
): Promise<BlameReport> {
  const clock = manualClock(Date.UTC(2026, 0, 1))
  const stored = await open(clock, seed)
  const cluster = new Cluster({ chance: chanceOf(seed), kind, plant, clock, stored })
  await cluster.play()
  await stored.remove()
  return cluster.report()
}

const inMemory: OpenStore = async (clock) => {
  const store = memoryStore({ clock })
  return { store, bytes: () => [], remove: () => store.close() }
}

class Cluster {
  readonly #chance: Chance
  readonly #kind: BlameKind
  readonly #plant: BlamePlant | undefined
  readonly #clock: ManualClock
  readonly #timers: ManualTimers
  readonly #scheduler
  readonly #stored: SimulatedStore
  readonly #store: Store
  readonly #nodes: Node[] = []
  readonly #running = new Set<Run>()
  readonly #violations: string[] = []
  readonly #keys = memoryGovernanceKeys({ seed: 'blame' })
  /** What was claimed since a thread of the small tenant was queued, by thread. */
  readonly #waits = new Map<string, number>()
  #ids = 0
  #lives = 0
  #deaths = 0
  #charges = 0
  #troubleLeft: number

  constructor(parts: {
    readonly chance: Chance
    readonly kind: BlameKind
    readonly plant: BlamePlant | undefined
    readonly clock: ManualClock
    readonly stored: SimulatedStore
  }) {
    const { chance, kind, plant, clock, stored } = parts
    this.#chance = chance
    this.#kind = kind
    this.#plant = plant
    this.#clock = clock
    this.#timers = manualTimers(clock)
    this.#stored = stored
    this.#store = stored.store
    this.#scheduler = seededScheduler({ random: chance.random, settled: stored.settled })
    this.#troubleLeft = kind === 'lease' ? chance.between(1, 6) : 0
    const skews = kind === 'lease' ? [-3_600_000, -40_000, 0, 40_000, 3_600_000] : [0]
    for (const name of kind === 'fair' ? ['one'] : ['one', 'two'])
      this.#nodes.push({
        name,
        skewMs: chance.pick(skews),
        lane: this.#scheduler.lane(name),
        runtime: undefined,
        owner: '',
        late: [],
      })
  }

  report(): BlameReport {
    return { violations: this.#violations, deaths: this.#deaths, charges: this.#charges }
  }

  async play(): Promise<void> {
    const seeds = this.#nodes.map((node) => this.#boot(node))
    await this.#step(Promise.all(seeds))
    await this.#step(this.#fill())
    for (let step = 0; this.#violations.length === 0; step++) {
      if (step > MAX_STEPS) return this.#violate('The run came to no end.')
      if (this.#troubleLeft > 0 && this.#chance.happens(0.02)) this.#trouble()
      if (this.#chance.happens(0.05)) await this.#timers.advance(this.#chance.pick([5, 900, 9_000]))
      if (await this.#scheduler.step()) continue
      if (await this.#isDone()) break
      if (!(await this.#timers.advanceToNext())) return this.#violate('Somebody waits for ever.')
    }
    await this.#checkEnd()
    for (const { lane } of this.#nodes) lane.kill()
  }

  /** Lets the scheduler run until the work is done. */
  async #step<T>(work: Promise<T>): Promise<T> {
    let isDone = false
    const done = work.finally(() => (isDone = true))
    while (!isDone) await this.#scheduler.step()
    return done
  }

  async #boot(node: Node): Promise<void> {
    const { lane } = node
    node.owner = `${node.name} ${++this.#lives}`
    node.late = []
    const { owner } = node
    const own = this.#stored.another ? await this.#stored.another() : this.#store
    const planted = this.#plant?.store?.(own, { ...node, clock: this.#clock }) ?? own
    const runtime = await createRuntime({
      agents: this.#agents(node),
      store: crashStore(this.#watched(planted, owner), { lane }),
      clock: { now: () => this.#clock.now() + node.skewMs },
      timers: this.#timersOf(node),
      ids: () => `00000000-0000-7000-8000-${String(++this.#ids).padStart(12, '0')}`,
      owner,
      keys: this.#keys,
      secretKey: new Uint8Array(32).fill(7),
      maxConcurrent: PLACES,
      limits: { leaseMs: LEASE_MS },
      onError: (error) => this.#violate(`A drain rejected: ${String(error)}`),
    })
    if (lane.state === 'dead') return
    node.runtime = runtime
    await runtime.start()
    // Where several processes share a store, each looks for due threads from time to time.
    const sweep = (): void => {
      void runtime.idle()
      this.#timersOf(node).set(5_000, sweep)
    }
    if (this.#kind === 'lease') sweep()
  }

  /** The law of leases, seen at the store: who takes what, and when. */
  #watched(store: Store, owner: string): Store {
    return overriding(store, {
      claim: async (id, options) => {
        const before = await this.#store.head(id)
        const claim = await store.claim(id, options)
        if (!claim || 'heldBy' in claim) return claim
        const lease = before?.lease
        const isTaken = lease && lease.owner !== owner
        if (isTaken && lease.until > this.#clock.now())
          this.#violate(`${owner} took ${id} from ${lease.owner}, whose lease has not ended`)
        const charged = claim.head.attempts - (before?.attempts ?? 0)
        if (charged > 0) this.#charge(claim.head)
        this.#countWaits(claim.head)
        return claim
      },
    })
  }

  #charge(head: ThreadHead): void {
    this.#charges++
    if (this.#kind === 'blame' && head.agent !== 'killer')
      this.#violate(`${head.id} (${head.agent}) was charged with a death`)
  }

  /** The law of fairness: after one round of places, whoever waits has begun. */
  #countWaits({ id, tenant }: ThreadHead): void {
    if (this.#kind !== 'fair') return
    this.#waits.delete(id)
    if (tenant !== 'many') return
    for (const [waiting, count] of this.#waits) {
      this.#waits.set(waiting, count + 1)
      if (count + 1 > PLACES)
        this.#violate(`${waiting} waits while ${count + 1} threads of another tenant begin`)
    }
  }

  #agents(node: Node): AgentDefinition[] {
    const { lane } = node
    const work = defineTool({
      name: 'work',
      description: '',
      risk: 'read_only',
      execute: async (state, _args, { toolCallId, signal } = {} as never) => {
        const run = { key: `${state.threadId} ${toolCallId}`, node, lane, signal }
        this.#begin(run)
        for (let turns = this.#chance.below(3); turns >= 0; turns--) await lane.turn('work', signal)
        await this.#sleep(node, this.#chance.pick([0, 10, 2_000, 45_000, 100_000]), signal)
        await lane.turn('work', signal)
        this.#running.delete(run)
        return 'worked'
      },
    })
    const crash = defineTool({
      name: 'crash',
      description: '',
      risk: 'read_only',
      execute: async (_state, _args, { signal } = {} as never) => {
        await lane.turn('crash', signal)
        await this.#sleep(node, this.#chance.pick([0, 0, 100, 3_000]), signal)
        if (signal?.aborted) return 'stopped'
        this.#die(node)
        return new Promise(() => {})
      },
    })
    const agentOf = (name: string, tool: 'work' | 'crash'): AgentDefinition => {
      const model = scripted(({ messages }) => {
        const results = messages.filter(({ type }) => type === 'tool_result').length
        return tool === 'work' && results > 1 ? says('Done.') : calls(tool, {})
      })
      const tools = [tool === 'work' ? work : crash]
      const prompt = definePrompt({ name, prompt: '', model, tools })
      return defineAgent({ name, sideA: { prompt } })
    }
    return [agentOf('worker', 'work'), agentOf('killer', 'crash')]
  }

  /** The law of calls: one run at a time of those that can go on. */
  #begin(run: Run): void {
    this.#running.add(run)
    for (const other of this.#running)
      if (other !== run && other.key === run.key && isActive(other))
        this.#violate(`the call ${run.key} runs in ${run.node.name} and in ${other.node.name}`)
  }

  async #fill(): Promise<void> {
    const [first] = this.#nodes
    const create = (agent: string, tenant: string) =>
      first!.runtime!.threads.create({ agent, tenant, message: 'go' })
    const many = this.#kind === 'fair' ? 12 : this.#chance.between(2, 6)
    for (let i = 0; i < many; i++) await create('worker', 'many')
    if (this.#kind === 'blame')
      for (let i = this.#chance.pick([1, 1, 2]); i > 0; i--) await create('killer', 'many')
    const { id } = await create('worker', 'few')
    if ((await this.#store.head(id))?.epoch === 0) this.#waits.set(id, 0)
  }

  #trouble(): void {
    const node = this.#chance.pick(this.#nodes)
    if (node.lane.state !== 'running') return
    this.#troubleLeft--
    if (this.#chance.happens(0.4)) return this.#die(node)
    node.lane.freeze()
    const ms = this.#chance.pick([1_000, 15_000, 25_000, 31_000, 90_000])
    this.#timers.set(ms, () => this.#thaw(node))
  }

  #thaw(node: Node): void {
    if (node.lane.state !== 'frozen') return
    node.lane.thaw()
    for (const ring of node.late.splice(0)) ring()
    for (const run of this.#running) if (run.node === node && isActive(run)) this.#begin(run)
  }

  #die(node: Node): void {
    this.#deaths++
    node.lane.kill()
    node.runtime = undefined
    node.owner = ''
    for (const run of this.#running) if (!isAlive(run)) this.#running.delete(run)
    node.lane = this.#scheduler.lane(node.name)
    this.#timers.set(this.#chance.pick([0, 100, 5_000, 60_000]), () => void this.#boot(node))
  }

  #sleep(node: Node, ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      this.#timersOf(node).set(ms, resolve)
      signal?.addEventListener('abort', () => resolve())
    })
  }

  #timersOf(node: Node): Timers {
    const { lane } = node
    return {
      now: () => this.#clock.now() + node.skewMs,
      set: (ms, callback) => {
        const late = this.#plant?.delays?.(ms) ? 3_600_000 : 0
        return this.#timers.set(ms + late, () => {
          if (lane.state === 'running') callback()
          else if (lane.state === 'frozen') node.late.push(callback)
        })
      },
      clear: (handle) => this.#timers.clear(handle),
    }
  }

  async #isDone(): Promise<boolean> {
    const heads = await this.#store.list({ limit: 1000 })
    return heads.every(({ lifecycle }) => lifecycle === 'idle' || lifecycle === 'failed')
  }

  async #checkEnd(): Promise<void> {
    if (this.#violations.length > 0) return
    for (const { id, agent, lifecycle, lease } of await this.#store.list({ limit: 1000 })) {
      const expected = agent === 'killer' ? 'failed' : 'idle'
      // Outside kills and long pauses cannot be told from the death of a thread that was alone.
      if (this.#kind !== 'lease' && lifecycle !== expected)
        this.#violate(`${id} (${agent}) is ${lifecycle}, not ${expected}`)
      const holder = this.#nodes.find(
        ({ owner, lane }) => lane.state === 'running' && owner === lease?.owner,
      )
      if (holder) this.#violate(`${id} is parked and held by ${holder.owner}`)
    }
  }

  #violate(what: string): void {
    this.#violations.push(what)
  }
}

function isAlive({ lane }: Run): boolean {
  return lane.state !== 'dead'
}

/** Whether a run can go on: its process works, and nobody has told it to stop. */
function isActive({ lane, signal }: Run): boolean {
  return lane.state === 'running' && !signal?.aborted
}
