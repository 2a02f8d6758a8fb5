import type { Commit, Registry, RuntimeEvent, Store, StoredEvent } from '@skein/runtime'
import { createRegistry } from '@skein/runtime'
import { recordedThread, type RecordedThread } from '@skein/evals'
import { runSeed } from '../../runtime/test/simulation/run-seed.ts'
import { simulatedAgents } from '../../runtime/test/simulation/simulated-agents.ts'
import { createWorld, type World } from '../../runtime/test/simulation/world.ts'

/** The root threads of one run of the simulation, with the definitions that it had. */
export interface SimulatedRun {
  readonly threads: readonly RecordedThread[]
  readonly registry: Registry
  readonly world: World
}

/** Runs one seed of the crash simulation and returns the threads that it left. */
export async function simulatedRun(seed: number): Promise<SimulatedRun> {
  const logs = new Map<string, RuntimeEvent[]>()
  const blobs = new Map<string, Uint8Array>()
  const note = ({ threads, blobs: written = [] }: Commit): void => {
    for (const { id, append = [] } of threads) logs.set(id, [...(logs.get(id) ?? []), ...append])
    for (const { hash, bytes } of written) blobs.set(hash, bytes)
  }
  const plant = (store: Store): Store =>
    new Proxy(store, {
      get(target, name) {
        if (name === 'commit')
          return async (commit: Commit) => {
            const result = await target.commit(commit)
            note(commit)
            return result
          }
        if (name === 'erase' || name === 'remove')
          return async (id: string, ...rest: never[]) => {
            logs.delete(id)
            return (target[name] as (...all: unknown[]) => unknown).call(target, id, ...rest)
          }
        const member: unknown = Reflect.get(target, name)
        return typeof member === 'function' ? member.bind(target) : member
      },
    })
  await runSeed(seed, { plant })
  const world = await createWorld({ seed })
  const registry = createRegistry(simulatedAgents(world, world.time.scheduler.lane('played')))
  const recorded = async (id: string): Promise<RecordedThread> => {
    const events: StoredEvent[] = logs.get(id)!.map((event, index) => ({
      seq: index + 1,
      event: JSON.parse(JSON.stringify(event)) as RuntimeEvent,
    }))
    const children: RecordedThread[] = []
    for (const { event } of events)
      if (event.type === 'subagent_created' && logs.has(event.reference))
        children.push(await recorded(event.reference))
    const at = Date.parse(events[0]!.event.at)
    const head = {
      tenant: 'default',
      owner: null,
      title: null,
      tags: [],
      clientId: null,
      createdAt: at,
      updatedAt: at,
      lifecycle: 'idle' as const,
    }
    return recordedThread({ events, blobs, children, head })
  }
  const threads: RecordedThread[] = []
  for (const [id, [first]] of logs)
    if (first?.type === 'thread_created' && first.parentThreadId === undefined)
      threads.push(await recorded(id))
  return { threads, registry, world }
}
