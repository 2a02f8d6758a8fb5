import { newThread } from '../src/testing/contract.ts'
import type { RuntimeEvent } from '../src/contract/event.ts'
import type { NewThread, ThreadChange } from '../src/store/commit.ts'
import type { Store } from '../src/store/store.ts'

/** A thread that really waits for an approval, to be copied many times. */
export interface WaitingThread {
  readonly threadId: string
  readonly interruptId: string
  readonly events: readonly RuntimeEvent[]
}

/** Returns the change that creates a copy of a waiting thread, with ids of its own. */
export function copyOfWaiting(
  { threadId, interruptId, events }: WaitingThread,
  id: string,
  rest: Partial<NewThread> & { readonly at: number },
): ThreadChange {
  const { at, ...create } = rest
  const time = new Date(at).toISOString()
  const text = JSON.stringify(events)
    .replaceAll(threadId, id)
    .replaceAll(interruptId, `${id}-question`)
    .replaceAll(/"at":"[^"]*"/g, `"at":"${time}"`)
  return {
    id,
    create: newThread(id, { agent: 'desk', createdAt: at, ...create }),
    append: JSON.parse(text) as RuntimeEvent[],
    head: { waiting: 1, lifecycle: 'waiting' },
  }
}

/** Writes changes in commits of 500 threads. */
export async function writeThreads(
  store: Pick<Store, 'commit'>,
  changes: readonly ThreadChange[],
): Promise<void> {
  for (let from = 0; from < changes.length; from += 500)
    await store.commit({ point: 'fill', threads: changes.slice(from, from + 500) })
}
