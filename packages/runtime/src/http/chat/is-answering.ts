import { isParked } from '../../live/read-thread.ts'
import type { Runtime } from '../../runtime-api.ts'
import type { ThreadHead } from '../../store/store.ts'

/** Whether a thread works, or a child that it waits for does; not when somebody has to answer first. */
export async function isAnswering(
  runtime: Runtime,
  thread: ThreadHead,
  now: number,
): Promise<boolean> {
  if (!isParked(thread, now)) return true
  const { lifecycle, waiting, tenant, rootId } = thread
  if (lifecycle !== 'waiting' || waiting > 0) return false
  const below = await runtime.inbox.list({ tenant, rootId })
  return below.length === 0
}
