import { sha256Hex } from '@skein/base'
import type { Identity } from '@skein/governance'
import type { GovernedSession } from './session-governor.ts'

/** The member of an identity that names the thread; grants are bound to it. */
export const THREAD_MEMBER = 'skein:thread'

/** Id of the governed request of a session: its own where that is a UUID, else always the same one. */
export function requestIdOf({
  threadId,
  sessionId,
}: Pick<GovernedSession, 'threadId' | 'sessionId'>): string {
  return BARE_UUID.test(sessionId) ? sessionId : uuidOf(`${threadId}\n${sessionId}`)
}

/** W3C trace id of a session. */
export function traceIdOf({
  threadId,
  sessionId,
}: Pick<GovernedSession, 'threadId' | 'sessionId'>): string {
  return sha256Hex(`trace\n${threadId}\n${sessionId}`).slice(0, 32)
}

/** For whom the session acts: the tenant owns it, the thread's owner is its user. */
export function identityOf({ agent, tenant, owner, threadId }: GovernedSession): Identity {
  return {
    agent_id: agent.name,
    owner_id: tenant || 'default',
    ...(owner && { user_id: owner }),
    control_class: 'human-supervised',
    [THREAD_MEMBER]: threadId,
  }
}

const BARE_UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/

/** A UUID of version 8 (RFC 9562 §5.8) from a text. */
function uuidOf(text: string): string {
  const hex = sha256Hex(text)
  const variant = ((Number.parseInt(hex[16]!, 16) & 3) | 8).toString(16)
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`]
  return [...parts, `${variant}${hex.slice(17, 20)}`, hex.slice(20, 32)].join('-')
}
