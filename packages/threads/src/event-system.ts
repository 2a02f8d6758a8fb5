import type { Interrupt, ThreadEvent, UnknownThreadEvent } from './event.ts'
import type { SystemMessage } from './types.ts'

/**
 * A fact of the live thread as a system message of the document. Approvals, handoffs and sources have names that the
 * bridges know; anything else is its own type with a dot, and its own fields.
 */
export function systemMessageOf(
  event: ThreadEvent | UnknownThreadEvent,
  interrupts: (id: string) => Interrupt | undefined,
): SystemMessage {
  const known = event as ThreadEvent
  switch (known.type) {
    case 'interrupt_opened':
      return opened(known)
    case 'interrupt_answered':
      return answered(known, interrupts(known.interruptId))
    case 'agent_handoff': {
      const { fromAgentId: from, toAgentId: to, reason, at } = known
      const data = { from, to, ...(reason !== undefined && { reason }) }
      return { ...message('agent.handoff', data, at), source_agent: from, target_agents: [to] }
    }
    case 'source_added':
      return source(known)
    case 'custom_event': {
      const system = message(known.name, known.data ?? null, known.at)
      return known.id === undefined ? system : ({ ...system, event_id: known.id } as SystemMessage)
    }
    default: {
      const { type, at, turnId: _, ...data } = event as UnknownThreadEvent
      return message(type.replace('_', '.'), data, at)
    }
  }
}

function message(event_type: string, event_data: unknown, timestamp: string): SystemMessage {
  return { message_type: 'system', timestamp, event_type, event_data }
}

function opened({
  interrupt,
  at,
}: Extract<ThreadEvent, { type: 'interrupt_opened' }>): SystemMessage {
  const { id, toolCallId: tool_call_id, kind, path, request } = interrupt
  const where = path === undefined ? {} : { path }
  if (kind !== 'approval') {
    return message(
      'interrupt.opened',
      { interrupt_id: id, tool_call_id, kind, ...where, request },
      at,
    )
  }
  const reason = (request as { reason?: unknown } | null | undefined)?.reason
  const why = typeof reason === 'string' ? { reason } : {}
  const asked = request === undefined ? {} : { request }
  return message(
    'tool.approval.requested',
    { approval_id: id, tool_call_id, ...why, ...where, ...asked },
    at,
  )
}

function answered(
  { interruptId, answer, answeredBy, at }: Extract<ThreadEvent, { type: 'interrupt_answered' }>,
  interrupt: Interrupt | undefined,
): SystemMessage {
  const by = answeredBy === undefined ? {} : { answered_by: answeredBy }
  const call = interrupt ? { tool_call_id: interrupt.toolCallId } : {}
  if (answer.type !== 'approve' && answer.type !== 'deny') {
    return message('interrupt.answered', { interrupt_id: interruptId, ...call, answer, ...by }, at)
  }
  const { reason } = answer
  const why = reason === undefined ? {} : { reason }
  const approved = answer.type === 'approve'
  // The token stays behind: it is a credential, and a document is not a place for one.
  return message(
    'tool.approval.responded',
    { approval_id: interruptId, ...call, approved, ...why, ...by },
    at,
  )
}

function source(event: Extract<ThreadEvent, { type: 'source_added' }>): SystemMessage {
  const { sourceId: source_id, url, title, mediaType, filename, at } = event
  const named = title === undefined ? {} : { title }
  if (url !== undefined) return message('source.url', { source_id, url, ...named }, at)
  const file = filename === undefined ? {} : { filename }
  return message('source.document', { source_id, media_type: mediaType, ...named, ...file }, at)
}
