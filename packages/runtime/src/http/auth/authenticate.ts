import type { Principal } from '../principal.ts'
import { ALL_SCOPES } from '../principal.ts'
import { apiKeys, type ApiKey } from './api-keys.ts'

/** Says who sent a request; null when it does not know. */
export type Verify = (request: Request) => Principal | null | Promise<Principal | null>

/**
 * Who may call: keys, a function of yours, several of them in order, or everyone on this machine
 * (`'none'`, for development).
 */
export type Auth =
  | 'none'
  | Verify
  | { readonly keys: readonly ApiKey[] }
  | readonly (Verify | { readonly keys: readonly ApiKey[] })[]

/** Whoever works on this machine without signing in. */
export const LOCAL_PRINCIPAL: Principal = {
  tenant: 'default',
  name: 'local',
  scopes: ALL_SCOPES,
}

/** One function from all the ways to say who one is; the first that knows counts. */
export function toVerify(auth: Auth, local: Principal = LOCAL_PRINCIPAL): Verify {
  if (auth === 'none') return () => local
  const ways = [auth].flat().map((way) => (typeof way === 'function' ? way : apiKeys(way.keys)))
  return async (request) => {
    for (const way of ways) {
      const principal = await way(request)
      if (principal) return principal
    }
    return null
  }
}
