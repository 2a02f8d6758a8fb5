import type { NumberedEvent, Runtime, SessionResult } from '../../runtime-api.ts'

/**
 * Numbered events of a thread until it is at rest or somebody has to answer, here or in a child of it.
 * Waiting for a child that works is no rest. Returns how it stands then; nothing when the reader left.
 */
export async function* untilSettled(
  runtime: Runtime,
  threadId: string,
  { after, signal }: { readonly after: string; readonly signal: AbortSignal },
): AsyncGenerator<NumberedEvent, SessionResult | undefined> {
  const left = new AbortController()
  const own = AbortSignal.any([signal, left.signal])
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
    // What was committed before the rest was noticed.
    const tail = { after: last, signal: own, untilParked: true }
    for await (const numbered of runtime.subscribe(threadId, tail)) yield numbered
    return result
  } finally {
    left.abort()
  }
}
