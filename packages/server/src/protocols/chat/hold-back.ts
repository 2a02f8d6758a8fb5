import type { ThreadEvent } from '@skein/threads'

type Added = Extract<ThreadEvent, { type: 'message_added' }>

/**
 * Holds back the text of an answer until the governor has delivered it. Tool calls are shown immediately, without the
 * text around them; an answer that the governor refuses is never shown.
 */
export class HoldBack {
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
        event satisfies InOrder
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
    const events = this.#held ?? []
    this.#held = undefined
    return isShown
      ? events
      : events.filter(({ type }) => type !== 'message_added' && type !== 'step_start')
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

/** Events without text of an answer; they keep their place behind an answer that waits. */
// prettier-ignore
type InOrder = Extract<ThreadEvent, { type:
  'thread_created' | 'thread_updated' | 'status_changed' | 'message_updated' | 'message_removed' |
  'delivery_changed' | 'turn_start' | 'turn_end' | 'tool_execution_start' | 'tool_execution_end' |
  'late_result' | 'interrupt_opened' | 'interrupt_answered' | 'subagent_created' |
  'subagent_updated' | 'subagent_ended' | 'agent_handoff' | 'gate_decided' | 'error_raised' |
  'usage_recorded' | 'agent_registered' | 'step_end' | 'tool_execution_progress' |
  'tool_call_hidden' | 'file_written' | 'file_removed' | 'source_added' | 'evidence_added'
}>
