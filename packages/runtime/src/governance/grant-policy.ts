import { decodeBase64Url, isPlainObject, systemClock, type Clock } from '@skein/base'
import { hashJson, type Policy, type Risk } from '@skein/governance'
import { THREAD_MEMBER } from './session-identity.ts'
import type { KernelState } from '../state/kernel-state.ts'

/** A second issuer name for the same key, because grants may be valid longer than tokens. */
export const RUNTIME_GRANTS = 'runtime-grants'

/** One hour in milliseconds. */
export const HOUR_MS = 3_600_000

/** A person's signed consent to a tool in a thread. It is plain data; store it where you like. */
export interface ToolGrant {
  readonly threadId: string
  readonly tool: string
  /** The highest risk of the calls that the grant allows. Default `write_high_risk`. */
  readonly risk?: 'write_low_risk' | 'write_high_risk'
  readonly by: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
  /** The signed text. Only this text is verified; the other fields are copies for people and for look-ups. */
  readonly grant: string
}

/** Options of `grantPolicy`. */
export interface GrantPolicyOptions {
  /** Returns the grant for a tool in a thread, if there is one. */
  readonly find: (place: {
    readonly threadId: string
    readonly tool: string
    readonly risk: Risk
  }) => ToolGrant | undefined | Promise<ToolGrant | undefined>
  readonly clock?: Clock
}

/**
 * Creates a policy that uses a stored grant instead of asking a person. List it next to the policy that asks
 * for review: it only affects calls with a grant, and a denial by another policy still applies.
 */
export function grantPolicy({ find, clock = systemClock }: GrantPolicyOptions): Policy {
  const id = 'tool-grants'
  return Object.freeze<Policy>({
    id,
    hash: hashJson({ id, version: 1 }),
    async decide({ identity, risk, tool }) {
      const threadId = identity[THREAD_MEMBER]
      if (risk === 'read_only' || typeof threadId !== 'string') return undefined
      const toolGrant = await find({ threadId, tool, risk })
      if (!toolGrant || toolGrant.expiresAt <= clock.now()) return undefined
      return { effect: 'review', grant: toolGrant.grant }
    },
  })
}

/**
 * Lets the first of these policies that is not in shadow mode (where decisions are only recorded) also read
 * the grants of the thread. Its hash does not change, so that a grant makes no approval invalid that was
 * given or is being asked for.
 */
export function withGrants(
  policies: readonly Policy[],
  options: GrantPolicyOptions,
): readonly Policy[] {
  const grants = grantPolicy(options)
  const place = policies.findIndex(({ mode }) => mode !== 'shadow')
  const first = policies[place]
  if (!first) return [...policies, grants]
  const decide: Policy['decide'] = async (action) => {
    const verdict = await first.decide(action)
    if (verdict?.effect === 'deny' || verdict?.grant !== undefined) return verdict
    const grantVerdict = await grants.decide(action)
    if (!grantVerdict || verdict === undefined) return grantVerdict ?? verdict
    return { ...verdict, grant: grantVerdict.grant }
  }
  const { id, hash, mode } = first
  return policies.with(place, Object.freeze({ id, hash, mode, decide }))
}

/**
 * Finds the grant for a call: of those that are not revoked and cover its risk, the one that ends last. A
 * revoked grant is recognised by the id in its signed text, so that the same text cannot be used under
 * another id.
 */
export function usableGrant(
  grants: KernelState['grants'] = new Map(),
  { threadId, tool, risk }: Parameters<GrantPolicyOptions['find']>[0],
): ToolGrant | undefined {
  const all = [...grants.values()]
  const revokedIds = new Set(all.flatMap((one) => (one.revoked ? [one.revoked.grantId] : [])))
  const usable = all.flatMap(({ made }): readonly ToolGrant[] => {
    const isWide = made.risk === 'write_high_risk' || made.risk === risk
    if (made.tool !== tool || !isWide) return []
    if (revokedIds.has(made.grantId) || revokedIds.has(signedId(made.grant))) return []
    return [{ ...made, threadId, expiresAt: Date.parse(made.expiresAt) }]
  })
  return usable.toSorted((a, b) => b.expiresAt - a.expiresAt)[0]
}

/** Reads the id in a signed text, without a check of its signature; empty if there is none. */
function signedId(text: string): string {
  try {
    const payload: unknown = JSON.parse(utf8.decode(decodeBase64Url(text.split('.')[1] ?? '')))
    return isPlainObject(payload) ? String(payload['jti'] ?? '') : ''
  } catch {
    return '' // not a signed text; the governor refuses it
  }
}

const utf8 = new TextDecoder()
