import type { ThreadQuery } from '../store/thread-query.ts'

/** A person's consent to all calls of a tool in one thread until a time. */
export interface StandingGrant {
  readonly grantId: string
  readonly tool: string
  /** The highest risk of the calls that the grant allows. */
  readonly risk: 'write_low_risk' | 'write_high_risk'
  readonly by: string
  readonly at: string
  readonly expiresAt: string
  readonly reason?: string
  readonly status: 'active' | 'expired' | 'revoked'
  readonly revoked?: { readonly by: string; readonly at: string }
}

/**
 * The standing grants of a thread. A grant is signed, ends within a day, and is used where a policy asks one person;
 * it never replaces a denial, or a second person where the policy asks several. Forks and children do not have it.
 */
export interface ThreadGrants {
  /** Returns all grants, also those that have ended, the latest first. */
  list(threadId: string): Promise<readonly StandingGrant[]>
  /** Returns the grants that hold now, over all threads, those that end first at the front. */
  all(
    query?: Pick<ThreadQuery, 'tenant' | 'owner' | 'limit'>,
  ): Promise<readonly (StandingGrant & GrantedThread)[]>
  /** Makes a grant. Give this right only to those who may approve. */
  make(
    threadId: string,
    grant: {
      readonly tool: string
      /** For how long the grant holds, 24 hours at most. */
      readonly forMs: number
      readonly by: string
      /** Default: the risk that the tool declares. */
      readonly risk?: StandingGrant['risk']
      readonly reason?: string
    },
  ): Promise<StandingGrant>
  /** Ends a grant now. Calls that have started continue. Rejects with `GRANT_NOT_FOUND`. */
  revoke(threadId: string, grantId: string, options: { readonly by: string }): Promise<void>
}

/** Where a standing grant holds. */
interface GrantedThread {
  readonly threadId: string
  readonly agent: string
  /** The title of the thread, or its first words. */
  readonly title: string | null
}
