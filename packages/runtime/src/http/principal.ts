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
