import { SkeinError } from '@skein/base'
import type { Runtime } from '../../runtime-api.ts'
import type { ThreadHead } from '../../store/store.ts'
import { findThread } from '../access.ts'
import { threadNotFound } from '../http-error.ts'
import { seesAllOwners, type Principal } from '../principal.ts'

/** The thread of a chat: the client chose its id, or it is the id of the thread itself. */
export async function findChat(
  runtime: Runtime,
  principal: Principal,
  chatId: string,
): Promise<ThreadHead> {
  const head = await runtime.threads.byClientId(principal.tenant, chatId)
  if (head && (seesAllOwners(principal) || head.owner === principal.user)) return head
  return findThread(runtime, principal, chatId)
}

/** The thread of a chat; made when the id is new. */
export async function openChat(
  runtime: Runtime,
  principal: Principal,
  { chatId, agent }: { readonly chatId: string; readonly agent: string },
): Promise<ThreadHead> {
  runtime.registry.agent(agent)
  const known = await knownChat(runtime, principal, chatId)
  if (known) return known
  const { tenant, user } = principal
  try {
    const owner = user === undefined ? {} : { owner: user }
    return await runtime.threads.create({ agent, tenant, clientId: chatId, ...owner })
  } catch (error) {
    if (!SkeinError.is(error) || error.code !== 'CLIENT_ID_TAKEN') throw error
    // Two requests were the first, or the id is somebody else's.
    const made = await knownChat(runtime, principal, chatId)
    if (made) return made
    throw threadNotFound()
  }
}

async function knownChat(
  runtime: Runtime,
  principal: Principal,
  chatId: string,
): Promise<ThreadHead | undefined> {
  try {
    return await findChat(runtime, principal, chatId)
  } catch (error) {
    if (SkeinError.is(error) && error.code === 'THREAD_NOT_FOUND') return undefined
    throw error
  }
}
