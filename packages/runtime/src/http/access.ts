import { SkeinError } from '@skein/base'
import type { Runtime } from '../runtime-api.ts'
import type { ThreadHead } from '../store/store.ts'
import { threadNotFound } from './http-error.ts'
import { seesAllOwners, type Principal } from './principal.ts'

const THREAD_ID = /^[\w.:~-]{1,200}$/

/** The thread, if this client may know of it; otherwise the same refusal as for an id that never was. */
export async function findThread(
  runtime: Runtime,
  principal: Principal,
  threadId: string,
): Promise<ThreadHead> {
  if (!THREAD_ID.test(threadId)) throw threadNotFound()
  const head = await headOf(runtime, threadId)
  if (!head || head.tenant !== principal.tenant) throw threadNotFound()
  if (seesAllOwners(principal) || head.owner === principal.user) return head
  const root = head.rootId === head.id ? head : await headOf(runtime, head.rootId)
  if (root?.tenant === principal.tenant && root.owner === principal.user) return head
  throw threadNotFound()
}

async function headOf(runtime: Runtime, threadId: string): Promise<ThreadHead | undefined> {
  try {
    return await runtime.threads.get(threadId)
  } catch (error) {
    if (SkeinError.is(error) && error.code === 'THREAD_NOT_FOUND') return undefined
    throw error
  }
}
