import {
  createRegistry,
  type Registry,
  type RuntimeEvent,
  type StoredEvent,
  type ThreadHead,
} from '@skein/runtime'
import { foldKernel } from '../../../src/state/fold.ts'
import type { KernelState } from '../../../src/state/kernel-state.ts'
import type { Clients } from '../clients.ts'
import { simulatedAgents } from '../simulated-agents.ts'
import type { World } from '../world.ts'

/** A thread as it was left. */
export interface FinishedThread {
  readonly head: ThreadHead
  readonly log: readonly StoredEvent[]
  readonly events: readonly RuntimeEvent[]
  readonly state: KernelState
}

/** A run that is over. */
export interface Finished {
  readonly world: World
  readonly clients: Clients
  readonly registry: Registry
  readonly threads: ReadonlyMap<string, FinishedThread>
}

export async function finish(world: World, clients: Clients): Promise<Finished> {
  const { store } = world.stored
  const threads = new Map<string, FinishedThread>()
  for (const head of await store.list({ sort: 'oldest', limit: 1000 })) {
    const log = await store.events(head.id)
    threads.set(head.id, {
      head,
      log,
      events: log.map(({ event }) => event),
      state: foldKernel(log),
    })
  }
  const nobody = world.time.scheduler.lane('nobody')
  nobody.kill()
  return { world, clients, registry: createRegistry(simulatedAgents(world, nobody)), threads }
}
