import { systemClock, type Clock } from '@skein/base'
import { hashJson, type Policy } from '@skein/governance'
import { THREAD_MEMBER } from './session-identity.ts'

/** A person's consent to a tool in a thread, signed. Plain data; keep it where you like. */
export interface ToolGrant {
  readonly threadId: string
  readonly tool: string
  readonly by: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
  /** The signed text; what it says counts, not what stands beside it. */
  readonly grant: string
}

export interface GrantPolicyOptions {
  /** The grant for a tool in a thread, if there is one. */
  readonly find: (place: {
    readonly threadId: string
    readonly tool: string
  }) => ToolGrant | undefined | Promise<ToolGrant | undefined>
  readonly clock?: Clock
}

/**
 * Lets a standing grant answer where a person would be asked. Put it beside the policy that asks: by
 * itself it allows nothing but what is granted, and a denial of another policy still counts.
 */
export function grantPolicy({ find, clock = systemClock }: GrantPolicyOptions): Policy {
  const id = 'tool-grants'
  return Object.freeze<Policy>({
    id,
    hash: hashJson({ id, version: 1 }),
    async decide({ identity, risk, tool }) {
      const threadId = identity[THREAD_MEMBER]
      if (risk === 'read_only' || typeof threadId !== 'string') return undefined
      const found = await find({ threadId, tool })
      if (!found || found.expiresAt <= clock.now()) return undefined
      return { effect: 'review', grant: found.grant }
    },
  })
}
