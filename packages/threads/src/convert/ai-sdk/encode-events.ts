import {
  type InterruptRecord,
  isThreadEvent,
  type ThreadEvent,
  type UnknownThreadEvent,
} from '../../events/event.ts'
import { systemMessageOf } from '../../events/system-message.ts'
import { userParts } from '../../events/message-parts.ts'
import { CARRIER, carry, eventPart, type TurnCarrier } from './carrier.ts'
import { EventStepEncoder } from './encode-event-step.ts'
import { encodePart, uiFinishReason } from './encode-ui-message.ts'
import { userContent } from './to-ui-parts.ts'
import type { FileUIPart, TextUIPart, UIFinishReason, UIMessageChunk } from './types.ts'

/** Settings of a `UIStreamEncoder`. */
export interface UIStreamEncoderOptions {
  /**
   * The id of the assistant message. A response that continues a message (after an answered approval or a
   * client's tool output) must have the id of that message, or the client shows two messages. Default: the id
   * of the first turn, or of the turn that it continues.
   */
  readonly messageId?: string
  /**
   * Calls of the continued message whose approval the client has answered and that have no output there. A
   * response that ends without their outcome closes them; see `end`.
   */
  readonly answered?: readonly string[]
  /** Names of agents that were registered before the stream began. */
  readonly agentNames?: Readonly<Record<string, string>>
}

type ToolEvent = Extract<
  ThreadEvent,
  { type: 'tool_execution_progress' | 'tool_execution_end' | 'tool_call_delta' }
>

/**
 * Converts live events to the chunks of one response. The client ends with the same messages that the stored
 * thread produces (`toUIMessages`), whether or not the model's text was streamed.
 */
export class UIStreamEncoder {
  readonly #options: UIStreamEncoderOptions
  readonly #names = new Map<string, string>()
  readonly #interrupts = new Map<string, InterruptRecord>()
  readonly #turns: TurnCarrier[] = []
  readonly #step = new EventStepEncoder()
  #hasStarted = false
  #finishReason: UIFinishReason | undefined

  constructor(options: UIStreamEncoderOptions = {}) {
    this.#options = options
    for (const [id, name] of Object.entries(options.agentNames ?? {})) this.#names.set(id, name)
  }

  /** Returns the chunks for an event; often none. */
  push(event: ThreadEvent | UnknownThreadEvent): UIMessageChunk[] {
    if (!isThreadEvent(event)) return this.#hasStarted ? this.#fact(event) : []
    switch (event.type) {
      case 'agent_registered':
        this.#names.set(event.agent.agent_id, event.agent.agent_name)
        return []
      case 'turn_start':
        return this.#startTurn(event)
      case 'turn_end':
        return this.#endTurn(event)
      case 'step_start':
        return this.#step.start()
      case 'step_reset':
        return this.#step.reset()
      case 'text_delta':
        return this.#step.delta('text', event.blockId, event.text)
      case 'reasoning_delta':
        return this.#step.delta('reasoning', event.blockId, event.text)
      case 'tool_call_delta':
      case 'tool_execution_progress':
      case 'tool_execution_end':
        return this.#tool(event)
      case 'message_added':
        return this.#message(event)
      case 'interrupt_opened':
        this.#interrupts.set(event.interrupt.id, event.interrupt)
        return this.#fact(event)
      case 'interrupt_answered':
      case 'late_result':
      case 'subagent_created':
      case 'subagent_updated':
      case 'subagent_ended':
      case 'agent_handoff':
      case 'file_written':
      case 'file_removed':
      case 'source_added':
      case 'evidence_added':
      case 'gate_decided':
      case 'error_raised':
        return this.#fact(event)
      case 'custom_event':
        if (!event.isTransient) return this.#fact(event)
        return this.#hasStarted
          ? [{ type: `data-${event.name}`, data: event.data ?? null, transient: true }]
          : []
      case 'message_updated':
        return event.message.type === 'assistant' ? this.#step.changed(event.message) : []
      case 'thread_created':
      case 'thread_updated':
      case 'message_removed':
      case 'delivery_changed':
      case 'step_end':
      case 'tool_execution_start':
      case 'tool_call_hidden':
      case 'status_changed':
      case 'usage_recorded':
        return []
      default:
        return event satisfies never
    }
  }

  /**
   * Ends the response. Without a `finish` chunk, a client cannot distinguish success from a broken
   * connection. A call that a person has answered never stays without an output: it is closed with an error,
   * and the response ends as `interrupted`, after which clients send nothing by themselves.
   */
  end(): UIMessageChunk[] {
    if (!this.#hasStarted) return []
    const chunks = this.#step.closeAnswered(this.#options.answered ?? [])
    if (chunks.length > 0 && this.#finishReason !== 'error') this.#finishReason = 'interrupted'
    const finish = { type: 'finish', finishReason: this.#finishReason } as const
    return [...chunks, ...this.#step.finish(), finish]
  }

  /** Ends the response after a failure; the text is shown to the person who reads the page. */
  fail(errorText: string): UIMessageChunk[] {
    this.#finishReason = 'error'
    return [...this.#step.finish(), { type: 'error', errorText }, ...this.end()]
  }

  #startTurn(event: Extract<ThreadEvent, { type: 'turn_start' }>): UIMessageChunk[] {
    const { turnId, agentId, continues } = event
    const who = { turn_id: turnId, agent_id: agentId, agent_name: this.#names.get(agentId) }
    this.#turns.push(who)
    this.#step.beginTurn(turnId, carry({ agent_id: agentId }))
    const messageMetadata = { [CARRIER]: { turns: [...this.#turns] } }
    if (this.#hasStarted) {
      const change: UIMessageChunk = { type: 'message-metadata', messageMetadata }
      return [...this.#step.finish(), { type: 'data-tp-turn', id: turnId, data: who }, change]
    }
    this.#hasStarted = true
    const messageId = this.#options.messageId ?? continues ?? turnId
    return [{ type: 'start', messageId, messageMetadata }]
  }

  #endTurn({ outcome, reason }: Extract<ThreadEvent, { type: 'turn_end' }>): UIMessageChunk[] {
    if (!this.#hasStarted) return []
    const chunks = this.#step.finish()
    if (outcome === 'parked') this.#finishReason = 'tool-calls'
    if (outcome === 'interrupted') this.#finishReason = 'interrupted'
    if (outcome !== 'failed') return chunks
    this.#finishReason = 'error'
    return [...chunks, { type: 'error', errorText: reason ?? 'The run failed.' }]
  }

  #message(event: Extract<ThreadEvent, { type: 'message_added' }>): UIMessageChunk[] {
    if (!this.#hasStarted) return []
    const { message } = event
    if (message.type === 'assistant') {
      this.#finishReason = uiFinishReason(event.finishReason)
      return this.#step.complete(message)
    }
    if (message.type === 'user') {
      const parts = userParts(message.content)
        .flatMap((part) =>
          part.part_kind === 'user-prompt' ? userContent(part, '', 'public') : [],
        )
        .filter(
          (part): part is TextUIPart | FileUIPart => part.type === 'text' || part.type === 'file',
        )
      return parts.length === 0 ? [] : [{ type: 'steering-message', id: message.id, parts }]
    }
    return message.results.flatMap(({ toolCallId, result, isError }) => {
      const outcome = event.outcomes?.[toolCallId] ?? (isError ? 'failed' : 'success')
      return this.#step.settle(toolCallId, outcome, result)
    })
  }

  #tool(event: ToolEvent): UIMessageChunk[] {
    if (!this.#hasStarted) return []
    if (event.type === 'tool_execution_end') {
      return this.#step.settle(event.toolCallId, event.outcome, event.result)
    }
    if (event.type === 'tool_call_delta') {
      return this.#step.callDelta(event.toolCallId, event.toolName, event.argumentsText)
    }
    const { toolCallId, output } = event
    return [
      { type: 'tool-output-available', toolCallId, output: output ?? null, preliminary: true },
    ]
  }

  /**
   * Returns the chunks for an event at the place where the stored thread will show it: on its call, or as a
   * separate part.
   */
  #fact(event: ThreadEvent | UnknownThreadEvent): UIMessageChunk[] {
    if (!this.#hasStarted) return []
    const message = systemMessageOf(event, (id) => this.#interrupts.get(id))
    const approval = this.#step.approval(message)
    if (approval) return approval
    const part = eventPart(message, undefined)
    return part && part.type !== 'step-start' ? [...encodePart(part, '')] : []
  }
}
