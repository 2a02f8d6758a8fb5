import {
  isThreadEvent,
  type InterruptRecord,
  type ThreadEvent,
  type UnknownThreadEvent,
} from './event.ts'
import type { SystemMessage } from '../document/thread.ts'

/**
 * Converts an event of the live thread to a system message of the document. Interrupts, handoffs, sources and
 * custom events get the names and fields that the conversions to other formats read; every other event is
 * converted by `plainMessage`.
 */
export function systemMessageOf(
  event: ThreadEvent | UnknownThreadEvent,
  interrupts: (id: string) => InterruptRecord | undefined,
): SystemMessage {
  if (!isThreadEvent(event)) return plainMessage(event)
  switch (event.type) {
    case 'interrupt_opened':
      return opened(event)
    case 'interrupt_answered':
      return answered(event, interrupts(event.interruptId))
    case 'agent_handoff': {
      const { fromAgentId: from, toAgentId: to, reason, at } = event
      const data = { from, to, reason }
      return {
        ...systemMessage('agent.handoff', data, at),
        source_agent: from,
        target_agents: [to],
      }
    }
    case 'source_added': {
      const { sourceId: source_id, url, title, mediaType: media_type, filename, at } = event
      return url === undefined
        ? systemMessage('source.document', { source_id, media_type, title, filename }, at)
        : systemMessage('source.url', { source_id, url, title }, at)
    }
    case 'custom_event': {
      const system: SystemMessage & { event_id?: string } = {
        ...systemMessage(event.name, event.data ?? null, event.at),
        event_id: event.id,
      }
      return system
    }
    case 'thread_created':
    case 'thread_updated':
    case 'agent_registered':
    case 'message_added':
    case 'message_updated':
    case 'message_removed':
    case 'delivery_changed':
    case 'turn_start':
    case 'turn_end':
    case 'step_start':
    case 'step_end':
    case 'step_reset':
    case 'text_delta':
    case 'reasoning_delta':
    case 'tool_call_delta':
    case 'tool_execution_start':
    case 'tool_execution_progress':
    case 'tool_execution_end':
    case 'late_result':
    case 'tool_call_hidden':
    case 'subagent_created':
    case 'subagent_updated':
    case 'subagent_ended':
    case 'file_written':
    case 'file_removed':
    case 'evidence_added':
    case 'gate_decided':
    case 'status_changed':
    case 'usage_recorded':
    case 'error_raised':
      return plainMessage(event)
    default:
      return event satisfies never
  }
}

/**
 * Converts an event to a system message with the same fields, except `turnId`. The name of the message is the
 * event's type with a dot for the first `_`: `file_written` becomes `file.written`.
 */
function plainMessage(event: ThreadEvent | UnknownThreadEvent): SystemMessage {
  const { type, at, turnId: _, ...data } = event as UnknownThreadEvent // any event is an object with these fields
  return systemMessage(type.replace('_', '.'), data, at)
}

/** Creates a system message of a document. */
export function systemMessage(
  event_type: string,
  event_data: unknown,
  timestamp: string,
): SystemMessage {
  return { message_type: 'system', timestamp, event_type, event_data }
}

function opened({
  interrupt,
  parsed,
  at,
}: Extract<ThreadEvent, { type: 'interrupt_opened' }>): SystemMessage {
  const { id, toolCallId: tool_call_id, kind, path, request } = interrupt
  const where = path === undefined ? {} : { path }
  if (kind !== 'approval') {
    return systemMessage(
      'interrupt.opened',
      { interrupt_id: id, tool_call_id, kind, ...where, request },
      at,
    )
  }
  const reason = (request as { reason?: unknown } | null | undefined)?.reason
  const why = typeof reason === 'string' ? { reason } : {}
  const requestField = request === undefined ? {} : { request }
  const argumentsField = parsed && { arguments: parsed.arguments }
  return systemMessage(
    'tool.approval.requested',
    { approval_id: id, tool_call_id, ...argumentsField, ...why, ...where, ...requestField },
    at,
  )
}

function answered(
  { interruptId, answer, answeredBy, at }: Extract<ThreadEvent, { type: 'interrupt_answered' }>,
  interrupt: InterruptRecord | undefined,
): SystemMessage {
  const by = answeredBy === undefined ? {} : { answered_by: answeredBy }
  const call = interrupt ? { tool_call_id: interrupt.toolCallId } : {}
  if (answer.type !== 'approve' && answer.type !== 'deny') {
    return systemMessage(
      'interrupt.answered',
      { interrupt_id: interruptId, ...call, answer, ...by },
      at,
    )
  }
  const { reason } = answer
  const why = reason === undefined ? {} : { reason }
  const isApproval = answer.type === 'approve'
  // The approval token is left out: it is a credential, and documents are copied and shared.
  return systemMessage(
    'tool.approval.responded',
    { approval_id: interruptId, ...call, approved: isApproval, ...why, ...by },
    at,
  )
}
