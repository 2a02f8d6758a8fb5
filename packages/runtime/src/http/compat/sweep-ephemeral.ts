import type { Runtime } from '../../runtime-api.ts'
import { EPHEMERAL } from './compat-thread.ts'

const INTERVAL_MS = 60_000
const PAGE = 100

/** When a tenant's threads were looked at, by runtime; forgotten with it. */
const sweptAt = new WeakMap<Runtime, Map<string, number>>()

/**
 * Removes threads that lived for one answer and have been quiet for a day: until then their log can be
 * read, and a call of the client or a decision can go on. At most once a minute.
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
    ({ lifecycle, updatedAt }) => lifecycle !== 'running' && updatedAt < now - ttlMs,
  )
  for (const { id } of old) await runtime.threads.remove(id)
  return old.length
}
