import { SkeinError } from '@skein/base'
import type { Runtime } from '../contract/runtime-api.ts'
import type { ThreadHead } from '../store/store.ts'
import { threadNotFound } from './http-error.ts'

/**
 * Every scope. `threads:all` shows the threads of every owner of the tenant; `admin` includes all others
 * except `metrics:read`, which looks over all tenants.
 */
export const ALL_SCOPES = [
  'threads:read',
  'threads:write',
  'threads:all',
  'approvals:write',
  'logs:read',
  'env:write',
  'metrics:read',
  'admin',
] as const

/** What a client may do. */
export type Scope = (typeof ALL_SCOPES)[number]

/** The authenticated client behind a request. */
export interface Principal {
  readonly tenant: string
  /** With a user, only the threads of that user are seen, unless a scope says otherwise. */
  readonly user?: string
  readonly scopes: readonly Scope[]
  /** For limits and for the log of decisions, where there is no user. Never a secret. */
  readonly name?: string
  /** When the key expires, in ms since 1970; streams end then. */
  readonly expiresAt?: number
}

/** Whether a client may do this. */
export function hasScope({ scopes }: Principal, scope: Scope): boolean {
  return scopes.includes(scope) || (scope !== 'metrics:read' && scopes.includes('admin'))
}

/** Whether threads of other owners of the tenant are seen too. */
export function seesAllOwners(principal: Principal): boolean {
  return principal.user === undefined || hasScope(principal, 'threads:all')
}

/** The name that the log records with a decision. */
export function actorOf({ user, name, tenant }: Principal): string {
  return user ?? name ?? tenant
}

/** The account that limits are counted for. */
export function accountOf({ tenant, user, name }: Principal): string {
  return JSON.stringify([tenant, user ?? null, name ?? null])
}

const THREAD_ID = /^[\w.:~-]{1,200}$/

/** The thread, if this client may see it; otherwise the same refusal as for an id that does not exist. */
export async function findThread(
  runtime: Runtime,
  principal: Principal,
  threadId: string,
): Promise<ThreadHead> {
  if (!THREAD_ID.test(threadId)) throw threadNotFound()
  const head = await ifFound(runtime.threads.get(threadId))
  if (!head || head.tenant !== principal.tenant) throw threadNotFound()
  if (seesAllOwners(principal) || head.owner === principal.user) return head
  // The owner of a root thread also sees its descendants, which have no owner of their own.
  const root = head.rootId === head.id ? head : await ifFound(runtime.threads.get(head.rootId))
  if (root?.tenant === principal.tenant && root.owner === principal.user) return head
  throw threadNotFound()
}

/** The thread of a chat: `chatId` is the id that the client chose for it, or the id of the thread. */
export async function findChat(
  runtime: Runtime,
  principal: Principal,
  chatId: string,
): Promise<ThreadHead> {
  const head = await runtime.threads.byClientId(principal.tenant, chatId)
  if (head && (seesAllOwners(principal) || head.owner === principal.user)) return head
  return findThread(runtime, principal, chatId)
}

/** Undefined instead of the error that there is no such thread. */
export async function ifFound<T>(thread: Promise<T>): Promise<T | undefined> {
  try {
    return await thread
  } catch (error) {
    if (SkeinError.is(error) && error.code === 'THREAD_NOT_FOUND') return undefined
    throw error
  }
}
