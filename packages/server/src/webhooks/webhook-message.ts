import type { JsonObject } from '@skein/base'
import type { InterruptRecord } from '@skein/threads'
import type { StoredEvent, ThreadInfo } from '@skein/runtime'

/** The kinds of events that a webhook can report. */
export type WebhookEvent = 'approval.requested' | 'session.ended'

/** A receiver: its address, the events it subscribes to, and the secret that signs them. */
export interface Webhook {
  readonly url: string
  /** `whsec_` and 24 to 64 bytes in base64. */
  readonly secret: string
  readonly events: readonly WebhookEvent[]
  /** The tenants whose events are sent. Default: all. */
  readonly tenants?: readonly string[]
}

/** The message that is sent. All tries have the same id, so that a receiver can recognise repetitions. */
export interface WebhookMessage {
  readonly id: string
  readonly type: WebhookEvent
  /** The time of the event, ISO 8601. */
  readonly timestamp: string
  readonly data: JsonObject
}

/** Creates the message about an event of the log; undefined for events that webhooks do not report. */
export function toWebhookMessage(
  { id, rootId, tenant, owner, agent }: ThreadInfo,
  { seq, event }: StoredEvent,
): WebhookMessage | undefined {
  const where = { threadId: id, rootId, tenant, owner, agent, seq }
  const message = { id: `msg_${id}_${seq}`, timestamp: event.at }
  // A handoff is not reported: the session of the next agent gives the answer.
  if (event.type === 'session_end' && event.reason !== 'handoff') {
    const { sessionId, outcome, reason, message: text } = event
    const data = { ...where, sessionId, outcome, reason, ...(text !== undefined && { text }) }
    return { ...message, type: 'session.ended', data }
  }
  if (event.type === 'interrupt_opened' && isForApprovers(event.interrupt.kind)) {
    const { id: interruptId, toolCallId, kind } = event.interrupt
    const expires = event.expiresAt === undefined ? {} : { expiresAt: event.expiresAt }
    return {
      ...message,
      type: 'approval.requested',
      data: { ...where, interruptId, toolCallId, kind, ...expires },
    }
  }
  return undefined
}

/** Whether a person who may approve has to answer. */
function isForApprovers(kind: InterruptRecord['kind']): boolean {
  return kind === 'approval' || kind === 'in_doubt'
}
