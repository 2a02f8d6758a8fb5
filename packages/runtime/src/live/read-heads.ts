import type { Store, ThreadHead } from '../store/store.ts'
import type { AbortGate } from './abort-gate.ts'

/** One reader of changes. A thread that changed often before it was read is given once. */
export interface HeadReader {
  note(threadId: string, removed?: ThreadHead): void
}

/** Heads of threads as they change, until the gate closes. */
export async function* readHeads(
  store: Store,
  readers: Set<HeadReader>,
  gate: AbortGate,
): AsyncGenerator<ThreadHead, void> {
  const pending = new Map<string, ThreadHead | undefined>()
  let ring: (() => void) | undefined
  const reader: HeadReader = {
    note(threadId, removed) {
      pending.set(threadId, removed)
      ring?.()
    },
  }
  readers.add(reader)
  try {
    while (!gate.isClosed) {
      const next = pending.entries().next().value
      if (!next) {
        await gate.through(new Promise<void>((resolve) => (ring = resolve)))
        continue
      }
      const [threadId, removed] = next
      pending.delete(threadId)
      const head = removed ?? (await gate.through(store.head(threadId)))
      if (head) yield head
    }
  } finally {
    readers.delete(reader)
    gate.close()
  }
}
