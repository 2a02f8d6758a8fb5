import type { Runtime } from '@skein/runtime'
import { EPHEMERAL } from './ask-thread.ts'

const INTERVAL_MS = 60_000

const PAGE = 100

/** The time of the last `sweepEphemeral` for each tenant, per runtime. */
const sweptAt = new WeakMap<Runtime, Map<string, number>>()

/**
 * Removes threads that were created for one answer and have been idle for a day. Until then their log can be
 * read, and they can continue with a result of the client's tools or a decision. Runs at most once a minute.
 */
export async function sweepEphemeral(
  runtime: Runtime,
  tenant: string,
  { now, ttlMs }: { readonly now: number; readonly ttlMs: number },
): Promise<number> {
  const times = sweptAt.get(runtime) ?? new Map<string, number>()
  sweptAt.set(runtime, times)
  if (now - (times.get(tenant) ?? -Infinity) < INTERVAL_MS) return 0
  times.set(tenant, now)
  const threads = await runtime.threads.list({
    tenant,
    tag: EPHEMERAL,
    parentId: null,
    sort: 'oldest',
    limit: PAGE,
  })
  const old = threads.filter(
    ({ lifecycle, updatedAt }) => lifecycle !== 'running' && Date.parse(updatedAt) < now - ttlMs,
  )
  for (const { id } of old) await runtime.threads.remove(id)
  return old.length
}
