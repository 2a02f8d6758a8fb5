import { SkeinError } from '@skein/base'
import type { Runtime } from '../runtime-api.ts'
import type { ThreadHead } from '../store/store.ts'
import { threadNotFound } from './http-error.ts'

/** What a client may do. `admin` includes all but `metrics:read`, which looks over all tenants. */
export type Scope =
  | 'threads:read'
  | 'threads:write'
  /** Threads of every owner of the tenant. */
  | 'threads:all'
  | 'approvals:write'
  | 'logs:read'
  | 'env:write'
  | 'metrics:read'
  | 'admin'

/** Whoever is behind a request. */
export interface Principal {
  readonly tenant: string
  /** With a user, only the threads of that user are seen, unless a scope says otherwise. */
  readonly user?: string
  readonly scopes: readonly Scope[]
  /** For limits and for the log of decisions, where there is no user. Never a secret. */
  readonly name?: string
  /** Streams end then; ms since 1970. */
  readonly expiresAt?: number
}

export const ALL_SCOPES: readonly Scope[] = [
  'threads:read',
  'threads:write',
  'threads:all',
  'approvals:write',
  'logs:read',
  'env:write',
  'metrics:read',
  'admin',
]

export function hasScope({ scopes }: Principal, scope: Scope): boolean {
  return scopes.includes(scope) || (scope !== 'metrics:read' && scopes.includes('admin'))
}

/** Whether threads of other owners of the tenant are seen too. */
export function seesAllOwners(principal: Principal): boolean {
  return principal.user === undefined || hasScope(principal, 'threads:all')
}

/** The name that stands beside a decision in the log. */
export function actorOf({ user, name, tenant }: Principal): string {
  return user ?? name ?? tenant
}

/** What limits are counted by. */
export function accountOf({ tenant, user, name }: Principal): string {
  return JSON.stringify([tenant, user ?? null, name ?? null])
}

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
