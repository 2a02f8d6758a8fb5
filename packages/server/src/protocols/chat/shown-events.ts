import { isThreadEvent, type ThreadEvent } from '@skein/threads'
import {
  agentRegistrations,
  checksAnswers,
  APPROVAL_GIVEN,
  isIrreversible,
} from '@skein/runtime/serving'
import { type Registry, type NumberedEvent } from '@skein/runtime'
import { isPlainObject, type JsonObject } from '@skein/base'
import type { ChatCall } from './answer-chat.ts'
import { publicEvent } from '@skein/runtime/view'

/**
 * Selects the events that a chat shows: those for people. With `hold`, text of agents whose answers are checked
 * (governed agents) is shown only after it has passed all checks.
 */
export class ShownEvents {
  readonly view: ChatView = new ChatView()
  /** Whether the answers of the current agent are checked before they are delivered. */
  isGoverned = false
  readonly #registry: Registry
  readonly #holds: boolean
  #hold: HoldBack | undefined

  constructor(registry: Registry, { hold = false }: { readonly hold?: boolean } = {}) {
    this.#registry = registry
    this.#holds = hold
  }

  push(event: NumberedEvent['event']): readonly ThreadEvent[] {
    const before = event.type === 'turn_start' ? this.#changeSpeaker(event.agentId) : []
    // The log says so, too: the definition may be gone, or have no task class any more.
    if (!this.isGoverned && isChecked(event)) this.#govern()
    const shown = this.view.push(event)
    const hold = this.#hold
    return hold ? [...before, ...shown.flatMap((one) => hold.push(one))] : [...before, ...shown]
  }

  /** Ends the selection. Returns the events that were held back, without text that was not delivered. */
  end(): readonly ThreadEvent[] {
    return this.#hold?.end() ?? []
  }

  /** Sets the current agent, for streams that begin in the middle of a turn. */
  speaks(agent: string): void {
    this.isGoverned = false
    this.#hold = undefined
    if (isGovernedAgent(this.#registry, agent)) this.#govern()
  }

  #govern(): void {
    this.isGoverned = true
    if (this.#holds) this.#hold = new HoldBack()
  }

  #changeSpeaker(agentId: string): readonly ThreadEvent[] {
    const rest = this.end()
    this.speaks(agentId.slice(0, agentId.lastIndexOf('/')))
    return rest
  }
}

/** Whether an agent has rules (a task class) by which its answers are checked before they are delivered. */
export function isGovernedAgent(registry: Registry, name: string): boolean {
  if (!registry.agents.has(name)) return false
  return checksAnswers(registry.agent(name))
}

/** Whether the event is words of an agent whose answers a gate checks. */
export function isChecked(event: NumberedEvent['event']): boolean {
  return 'delivery' in event && event.delivery !== undefined && event.type !== 'delivery_changed'
}

/**
 * Returns the names to show for the two sides of each agent's conversation, by the agent id in their turns' events.
 */
export function agentNames(registry: Registry): Readonly<Record<string, string>> {
  const agents = [...registry.agents.values()].flatMap((agent) => agentRegistrations(agent, ''))
  return Object.fromEntries(agents.map(({ agent }) => [agent.agent_id, agent.agent_name]))
}

type AnyEvent = NumberedEvent['event']

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
    const shown = publicEvent(event)
    switch (shown.type) {
      case 'message_added':
        return isVisible(event) ? [shown] : []
      case 'interrupt_opened':
        // Approvals of scheduled effects belong to no call of the chat; the inbox lists them.
        if (shown.interrupt.kind !== 'approval' || 'effectId' in event) return []
        this.#approvals.add(shown.interrupt.id)
        return [withoutRequest(shown)]
      case 'interrupt_answered':
        if (shown.answer.type !== 'approve' && shown.answer.type !== 'deny') return []
        return this.#approvals.has(shown.interruptId) ? [shown] : []
      case 'turn_start':
        this.#turnId = shown.turnId
        return [shown]
      case 'gate_decided':
      case 'evidence_added': {
        const { type, at, turnId = this.#turnId, ...data } = shown
        const name = type === 'gate_decided' ? 'gate' : 'evidence'
        return [dataEvent(name, data as JsonObject, { at, turnId })] // the log is JSON
      }
      case 'subagent_created':
      case 'subagent_updated':
      case 'subagent_ended':
        return this.#child(shown)
      case 'turn_end':
        if (shown.outcome !== 'failed') return [shown]
        this.#failedTurn = shown // `#endSession` sends the turn with the reason of the failure
        return []
      case 'custom_event':
        return shown.name === APPROVAL_GIVEN ? [] : [shown]
      case 'error_raised':
      case 'tool_call_hidden':
        return []
      default:
        return [shown]
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

/** Returns false for messages that only models see. */
export function isVisible(event: AnyEvent): boolean {
  const { isSilent, subagentId } = event as { isSilent?: boolean; subagentId?: string }
  return isSilent !== true && subagentId === undefined
}

/** Whether the event is a message of a person, which is followed by a new answer. */
export function isShownUserMessage(event: AnyEvent): boolean {
  return event.type === 'message_added' && event.message.type === 'user' && isVisible(event)
}

/** Removes the request to be signed, which only the inbox needs; the page gets only the question. */
function withoutRequest(event: Extract<ThreadEvent, { type: 'interrupt_opened' }>): ThreadEvent {
  const { request, ...interrupt } = event.interrupt
  const given = isPlainObject(request) ? request['reason'] : undefined
  const reason = reasonOf(typeof given === 'string' ? given : '', isIrreversible(request))
  return {
    ...event,
    interrupt: reason === undefined ? interrupt : { ...interrupt, request: { reason } },
  }
}

/** Returns what the page shows beside an approval; undefined if there is nothing to say. */
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

type Added = Extract<ThreadEvent, { type: 'message_added' }>

/**
 * Holds back the text of an answer until the governor, which checks it, has delivered it. Tool calls are shown
 * immediately, without the text around them; an answer that the governor refuses is never shown.
 */
class HoldBack {
  /** The answer that waits for its delivery, and all events after it, in order. */
  #held: ThreadEvent[] | undefined
  #step: ThreadEvent | undefined

  push(event: ThreadEvent): readonly ThreadEvent[] {
    switch (event.type) {
      case 'text_delta':
      case 'reasoning_delta':
        return []
      case 'step_start':
        this.#step = event
        return []
      case 'step_reset':
        this.#step = undefined
        return this.#held ? [] : [event]
      case 'tool_call_delta':
        return this.#withStep(event)
      case 'message_added':
        return event.message.type === 'assistant' ? this.#message(event) : this.#keep(event)
      case 'custom_event':
        return isVerdict(event) ? [...this.#settle(isDelivered(event)), event] : this.#keep(event)
      default:
        return this.#keep(event)
    }
  }

  /** Ends the stream: text that was not delivered is dropped. */
  end(): readonly ThreadEvent[] {
    return this.#settle(false)
  }

  #message(event: Added): readonly ThreadEvent[] {
    const { message } = event
    if (message.type !== 'assistant') return []
    if (message.toolCalls?.length) {
      const content = message.content.filter(
        (block) => block.type !== 'text' && block.type !== 'reasoning',
      )
      return this.#withStep({ ...event, message: { ...message, content } })
    }
    const before = this.#settle(false)
    this.#held = [...this.#takeStep(), event]
    return before
  }

  #withStep(event: ThreadEvent): readonly ThreadEvent[] {
    return [...this.#settle(false), ...this.#takeStep(), event]
  }

  #takeStep(): readonly ThreadEvent[] {
    const step = this.#step
    this.#step = undefined
    return step ? [step] : []
  }

  #keep(event: ThreadEvent): readonly ThreadEvent[] {
    if (!this.#held) return [event]
    this.#held.push(event)
    return []
  }

  #settle(isShown: boolean): readonly ThreadEvent[] {
    const held = this.#held ?? []
    this.#held = undefined
    return isShown
      ? held
      : held.filter(({ type }) => type !== 'message_added' && type !== 'step_start')
  }
}

function isVerdict({ name, data }: Extract<ThreadEvent, { type: 'custom_event' }>): boolean {
  return name === 'gate' && (data as { gate?: unknown } | null)?.gate === 'pre_deliver'
}

/** Whether this event says that an answer has passed the checks of the governor and is delivered. */
export function isDelivered(event: ThreadEvent): boolean {
  if (event.type !== 'custom_event' || !isVerdict(event)) return false
  return (event.data as { decision?: unknown }).decision === 'delivered'
}

/**
 * Whether text of agents whose answers are checked (governed agents) is held back until it has passed all checks:
 * because the server is set so, or because the page asks for it.
 */
export function holds({ query, services }: Pick<ChatCall, 'query' | 'services'>): boolean {
  return services.holdsGoverned || query.hold === true
}
