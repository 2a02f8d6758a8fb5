import type { ThreadIdentity } from './thread-identity.ts'
import { SkeinError } from '@skein/base'
import { FOUND_EFFECTS, type Runtime, type ThreadInfo, type WaitingItem } from '@skein/runtime'
import { type FoundEffect } from '@skein/runtime/serving'
import { HttpError, threadNotFound } from './http-error.ts'
import type { Services } from '../http/services.ts'

/**
 * Every scope. `threads:all` gives access to the threads of all owners of the tenant; `admin` includes all
 * scopes except `metrics:read`, which covers all tenants.
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

/** A permission of a client. */
export type Scope = (typeof ALL_SCOPES)[number]

/** The authenticated client behind a request. */
export interface Principal {
  readonly tenant: string
  /** The user of the client. The client then sees only the threads of that user, unless a scope allows more. */
  readonly user?: string
  readonly scopes: readonly Scope[]
  /** A name for the client in limits and in recorded decisions, used if there is no user. Never a secret. */
  readonly name?: string
  /** When the client's key expires, in ms since 1970; its open streams end then. */
  readonly expiresAt?: number
}

/** Whether a client has a scope. */
export function hasScope({ scopes }: Principal, scope: Scope): boolean {
  return scopes.includes(scope) || (scope !== 'metrics:read' && scopes.includes('admin'))
}

/** Throws unless the client may decide about approvals, and about calls whose effect is unknown after a crash. */
export function checkMayApprove(principal: Principal): void {
  if (hasScope(principal, 'approvals:write')) return
  throw new HttpError('Deciding about a call needs the scope approvals:write.', {
    code: 'SCOPE_MISSING',
    hint: 'Use a key that has this scope, or let someone decide who may: the inbox lists the call.',
  })
}

/** Throws unless `found` is one of the answers to the question whether a call had its effect before a crash. */
export function checkFound(
  { interruptId, toolName }: WaitingItem,
  found: unknown,
): asserts found is FoundEffect {
  if (FOUND_EFFECTS.some((known) => known === found)) return
  throw new HttpError(`The answer to ${interruptId} does not say whether "${toolName}" ran.`, {
    code: 'ANSWER_INVALID',
    hint: `A process died during the call. Answer ${FOUND_EFFECTS.join(', ')}.`,
  })
}

/** Whether the client may see the threads of all owners of its tenant. */
export function seesAllOwners(principal: Principal): boolean {
  return principal.user === undefined || hasScope(principal, 'threads:all')
}

/** Returns the name that the log records with a decision. */
export function actorOf({ user, name, tenant }: Principal): string {
  return user ?? name ?? tenant
}

/** Returns the key under which rate limits count the requests of a client. */
export function accountOf({ tenant, user, name }: Principal): string {
  return JSON.stringify([tenant, user ?? null, name ?? null])
}

const THREAD_ID = /^[\w.:~-]{1,200}$/

/** Finds a thread that this client may see. Otherwise throws the same error as for an unknown id. */
export async function findThread(
  runtime: Runtime,
  principal: Principal,
  threadId: string,
): Promise<ThreadIdentity> {
  if (!THREAD_ID.test(threadId)) throw threadNotFound()
  const head = await ifFound(runtime.threads.head(threadId))
  if (!head || head.tenant !== principal.tenant) throw threadNotFound()
  if (seesAllOwners(principal) || head.owner === principal.user) return head
  // The owner of a root thread may also see its descendants, which have no owner of their own.
  const root = head.rootId === head.id ? head : await ifFound(runtime.threads.head(head.rootId))
  if (root?.tenant === principal.tenant && root.owner === principal.user) return head
  throw threadNotFound()
}

/** Finds the thread of a chat by the id that the client chose for it, or by the id of the thread. */
export async function findChat(
  runtime: Runtime,
  principal: Principal,
  chatId: string,
): Promise<ThreadIdentity> {
  const head = await byClientId(runtime, principal, chatId)
  return head ?? findThread(runtime, principal, chatId)
}

/**
 * Finds the thread with the id that a client chose: first among the client's own threads; if there is
 * none and the client may see all owners, the oldest thread of its tenant with that id.
 */
export async function byClientId(
  { threads }: Runtime,
  principal: Principal,
  clientId: string,
): Promise<ThreadInfo | undefined> {
  const { tenant, user = null } = principal
  const own = await threads.byClientId(tenant, clientId, user)
  return own || !seesAllOwners(principal) ? own : threads.byClientId(tenant, clientId)
}

/** Resolves to the thread, or to undefined instead of rejecting when there is no such thread. */
export async function ifFound<T>(thread: Promise<T>): Promise<T | undefined> {
  try {
    return await thread
  } catch (error) {
    if (SkeinError.is(error) && error.code === 'THREAD_NOT_FOUND') return undefined
    throw error
  }
}

/** Throws unless the server lets clients choose the model, the settings or the tool call of a run. */
export function checkPlayground({ isPlayground }: Services['studio']): void {
  if (isPlayground) return
  throw new HttpError('This server does not let clients choose models, settings or calls.', {
    code: 'PLAYGROUND_OFF',
    hint: 'The operator allows it with `playground: true`; `skein dev` does.',
  })
}
