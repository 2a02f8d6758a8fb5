import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import type { NumberedEvent, Runtime, SessionResult } from '@skein/runtime'
import { isParked } from '@skein/runtime/serving'

/**
 * Yields the numbered events of a thread until it is at rest, or until it or a descendant needs an answer
 * from a person. A thread that waits for a working child is not at rest. Returns the result, or undefined
 * when the reader has left.
 */
export async function* untilSettled(
  runtime: Runtime,
  threadId: string,
  { after, signal }: { readonly after: string; readonly signal: AbortSignal },
): AsyncGenerator<NumberedEvent, SessionResult | undefined> {
  const leave = new AbortController()
  const own = AbortSignal.any([signal, leave.signal])
  const rest = new AbortController()
  let result: SessionResult | undefined
  let failure: unknown
  const waiting = runtime.threads
    .settled(threadId, { signal: own })
    .then(
      (settled) => void (result = settled),
      (error: unknown) => void (failure = error),
    )
    .finally(() => rest.abort())
  let last = after
  try {
    const live = AbortSignal.any([own, rest.signal])
    for await (const numbered of runtime.subscribe(threadId, { after, signal: live })) {
      last = numbered.id
      yield numbered
    }
    await waiting
    if (signal.aborted) return undefined
    if (failure !== undefined) throw failure
    // Reads the events that were committed after the last one read and before the thread came to rest.
    const tail = { after: last, signal: own, untilCaughtUp: true }
    for await (const numbered of runtime.subscribe(threadId, tail)) yield numbered
    return result
  } finally {
    leave.abort()
  }
}

/** Whether the thread, or a child that it waits for, is working. False while a person has to answer first. */
export async function isAnsweringChat(
  runtime: Runtime,
  thread: ThreadIdentity,
  now: number,
): Promise<boolean> {
  if (!isParked(thread, now)) return true
  const { lifecycle, tenant, rootId } = thread
  if (lifecycle !== 'waiting') return false
  const items = await runtime.inbox.list({ tenant, rootId })
  return items.every(({ kind }) => kind === 'variables') // nothing waits for variables but their child
}
