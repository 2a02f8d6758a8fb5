import { isThreadEvent, type ThreadEvent } from '@skein/threads'
import { agentRegistrations, APPROVAL_GIVEN, isIrreversible } from '@skein/runtime/serving'
import type { Registry } from '@skein/runtime'
import { isPlainObject, type JsonObject } from '@skein/base'
import { publicEvent } from '@skein/runtime/view'
import { type AnyEvent, isVisible } from './visible-events.ts'

/**
 * Returns the names to show for the two sides of each agent's conversation, by the agent id in their turns' events.
 */
export function agentNames(registry: Registry): Readonly<Record<string, string>> {
  const agents = [...registry.agents.values()].flatMap((agent) => agentRegistrations(agent, ''))
  return Object.fromEntries(agents.map(({ agent }) => [agent.agent_id, agent.agent_name]))
}

/**
 * Converts the events of a thread to those that a chat shows; the live stream and the stored history are both
 * built from them. Messages for models only, reports of children and internal events are left out; judgements of
 * the governor, evidence and children become application data (`data-gate`, `data-evidence`, `data-child`).
 */
export class ChatView {
  /** The calls of this thread that created a child, by the child's thread id. */
  readonly callOfChild: Map<string, string> = new Map()
  readonly #approvals = new Set<string>()
  readonly #children = new Map<string, JsonObject>()
  /** The turn to which events without a turn id are assigned. */
  #turnId: string | undefined
  #failedTurn: Extract<ThreadEvent, { type: 'turn_end' }> | undefined

  push(event: AnyEvent): readonly ThreadEvent[] {
    if (event.type === 'session_end') return this.#endSession(event.message)
    if (!isThreadEvent(event)) return []
    const view = publicEvent(event)
    switch (view.type) {
      case 'message_added':
        return isVisible(event) ? [view] : []
      case 'interrupt_opened':
        // Approvals of effects belong to no call of the chat; the inbox lists them.
        if (view.interrupt.kind !== 'approval' || 'effectId' in event) return []
        this.#approvals.add(view.interrupt.id)
        return [withoutRequest(view)]
      case 'interrupt_answered':
        if (view.answer.type !== 'approve' && view.answer.type !== 'deny') return []
        return this.#approvals.has(view.interruptId) ? [view] : []
      case 'turn_start':
        this.#turnId = view.turnId
        return [view]
      case 'gate_decided':
      case 'evidence_added': {
        const { type, at, turnId = this.#turnId, ...data } = view
        const name = type === 'gate_decided' ? 'gate' : 'evidence'
        return [dataEvent(name, data as JsonObject, { at, turnId })] // the log is JSON
      }
      case 'subagent_created':
      case 'subagent_updated':
      case 'subagent_ended':
        return this.#child(view)
      case 'turn_end':
        if (view.outcome !== 'failed') return [view]
        this.#failedTurn = view // `#endSession` sends the turn with the reason of the failure
        return []
      case 'custom_event':
        return view.name === APPROVAL_GIVEN ? [] : [view]
      case 'error_raised':
      case 'tool_call_hidden':
        return []
      default:
        view satisfies ShownAsIs
        return [view]
    }
  }

  /** Sends the failed turn with the message of its session, which is written for people. */
  #endSession(message: string | undefined): readonly ThreadEvent[] {
    const turn = this.#failedTurn
    this.#failedTurn = undefined
    if (!turn) return []
    return [message === undefined || message === '' ? turn : { ...turn, reason: message }]
  }

  #child(event: ChildEvent): readonly ThreadEvent[] {
    const { reference, at } = event
    const before = this.#children.get(reference) ?? { reference }
    const child = { ...before, ...childFields(event) }
    this.#children.set(reference, child)
    if (event.type === 'subagent_created' && event.toolCallId !== undefined)
      this.callOfChild.set(reference, event.toolCallId)
    return [dataEvent('child', child, { at, turnId: this.#turnId, id: reference })]
  }
}

/** Removes the request to be signed, which only the inbox needs; the page gets only the question. */
function withoutRequest(event: Extract<ThreadEvent, { type: 'interrupt_opened' }>): ThreadEvent {
  const { request, ...interrupt } = event.interrupt
  const text = isPlainObject(request) ? request['reason'] : undefined
  const reason = reasonOf(typeof text === 'string' ? text : '', isIrreversible(request))
  return {
    ...event,
    interrupt: reason === undefined ? interrupt : { ...interrupt, request: { reason } },
  }
}

/** Returns what the page shows next to an approval; undefined if there is nothing to say. */
export function reasonOf(reason: string, cannotBeUndone: boolean | undefined): string | undefined {
  const words = [reason, cannotBeUndone ? 'This cannot be undone.' : '']
  return words.filter((text) => text !== '').join(' ') || undefined
}

type ChildEvent = Extract<
  ThreadEvent,
  { type: 'subagent_created' | 'subagent_updated' | 'subagent_ended' }
>

function childFields(event: ChildEvent): JsonObject {
  switch (event.type) {
    case 'subagent_created': {
      const { name, title, threadName, toolCallId } = event
      return defined({ name, title, threadName, toolCallId, status: 'running' })
    }
    case 'subagent_updated':
      return defined({ status: event.status, statusText: event.statusText })
    case 'subagent_ended':
      return { status: event.outcome }
  }
}

/** Drops undefined members, because they would overwrite known fields of the child. */
function defined(fields: Readonly<Record<string, string | undefined>>): JsonObject {
  const object: Record<string, string> = {}
  for (const [name, value] of Object.entries(fields)) if (value !== undefined) object[name] = value
  return object
}

function dataEvent(
  name: string,
  data: JsonObject,
  { at, turnId, id }: { at: string; turnId?: string | undefined; id?: string },
): ThreadEvent {
  return { type: 'custom_event', at, name, data, turnId, id }
}

/** Events that a chat shows unchanged. */
// prettier-ignore
type ShownAsIs = Extract<ThreadEvent, { type:
  'thread_created' | 'thread_updated' | 'status_changed' | 'message_updated' | 'message_removed' |
  'delivery_changed' | 'step_start' | 'step_reset' | 'text_delta' | 'tool_execution_start' |
  'tool_execution_end' | 'late_result' | 'agent_handoff' | 'usage_recorded' | 'agent_registered' |
  'step_end' | 'reasoning_delta' | 'tool_call_delta' | 'tool_execution_progress' |
  'file_written' | 'file_removed' | 'source_added'
}>
