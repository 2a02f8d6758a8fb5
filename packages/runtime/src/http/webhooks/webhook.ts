import type { JsonObject } from '@skein/base'
import type { StoredEvent } from '../../event.ts'
import type { ThreadHead } from '../../store/store.ts'

export type WebhookEvent = 'approval.requested' | 'session.ended'

/** Where to tell what, and how it is signed. */
export interface Webhook {
  readonly url: string
  /** `whsec_` and 24 to 64 bytes in base64. */
  readonly secret: string
  readonly events: readonly WebhookEvent[]
  /** Default all. */
  readonly tenants?: readonly string[]
}

/** What is sent. The id is the same for every try, so that a receiver can tell a repetition. */
export interface WebhookMessage {
  readonly id: string
  readonly type: WebhookEvent
  /** ISO 8601, of the event. */
  readonly timestamp: string
  readonly data: JsonObject
}

/** What an event of the log is to the world outside; undefined when it is nothing. */
export function toWebhookMessage(
  { id, rootId, tenant, owner, agent }: ThreadHead,
  { seq, event }: StoredEvent,
): WebhookMessage | undefined {
  const where = { threadId: id, rootId, tenant, owner, agent, seq }
  const message = { id: `msg_${id}_${seq}`, timestamp: event.at }
  if (event.type === 'session_end') {
    const { sessionId, outcome, reason, message: text } = event
    const data = { ...where, sessionId, outcome, reason, ...(text !== undefined && { text }) }
    return { ...message, type: 'session.ended', data }
  }
  if (event.type === 'interrupt_opened' && event.interrupt.kind === 'approval') {
    const { id: interruptId, toolCallId } = event.interrupt
    const expires = event.expiresAt === undefined ? {} : { expiresAt: event.expiresAt }
    return {
      ...message,
      type: 'approval.requested',
      data: { ...where, interruptId, toolCallId, ...expires },
    }
  }
  return undefined
}
