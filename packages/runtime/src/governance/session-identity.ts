import { sha256Hex } from '@skein/base'
import type { Identity } from '@skein/governance'
import type { GovernedSession } from './session-governor.ts'

/** The member of an identity that contains the thread id. Grants are valid only for that thread. */
export const THREAD_MEMBER = 'skein:thread'

/** The member of an identity with the requests that the session works for, the outermost first. */
export const CALLERS_MEMBER = 'skein:callers'

/** Returns the id of a session's request: the session's id if it is a UUID, else a UUID derived from it. */
export function sessionRequestId({
  threadId,
  sessionId,
}: Pick<GovernedSession, 'threadId' | 'sessionId'>): string {
  return BARE_UUID.test(sessionId) ? sessionId : uuidOf(`${threadId}\n${sessionId}`)
}

/** Returns the W3C trace id of a session. */
export function traceIdOf({
  threadId,
  sessionId,
}: Pick<GovernedSession, 'threadId' | 'sessionId'>): string {
  return sha256Hex(`trace\n${threadId}\n${sessionId}`).slice(0, 32)
}

/**
 * Returns the identity for which the session acts: the tenant is its owner, and the owner of the thread is
 * its user.
 */
export function sessionIdentity({
  agent,
  tenant,
  owner,
  threadId,
  callers = [],
}: GovernedSession): Identity {
  return {
    agent_id: agent.name,
    owner_id: tenant || 'default',
    ...(owner && { user_id: owner }),
    control_class: 'human-supervised',
    [THREAD_MEMBER]: threadId,
    ...(callers.length > 0 && { [CALLERS_MEMBER]: callers.map(sessionRequestId).join(' ') }),
  }
}

const BARE_UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/

/** Derives a UUID of version 8 (RFC 9562 §5.8) from a text. */
function uuidOf(text: string): string {
  return uuidFrom(sha256Hex(text))
}

/** Returns the UUID of version 8 with the bits of a hash. */
export function uuidFrom(hex: string): string {
  const variant = ((Number.parseInt(hex[16]!, 16) & 3) | 8).toString(16)
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`]
  return [...parts, `${variant}${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')
}
