import type { ThreadIdentity } from '../../operations/thread-identity.ts'
import type { ThreadEvent } from '@skein/threads'
import { ErrorCode, type StreamEvent, type TokenUsage } from '@skein/ai'
import { zeroUsage } from '@skein/ai/engine'
import type { NumberedEvent, Runtime, SessionResult, WaitingItem } from '@skein/runtime'
import { ShownEvents } from '../chat/shown-events.ts'
import { untilSettled } from '../chat/until-settled.ts'
import { ApprovalRequiredError, compatRefusal } from './refusal.ts'
import { threadPartId } from '../thread-part-id.ts'

/** Which answer of a thread is sent, and how. */
export interface AgentEventsOptions {
  /** Number of the event after which the answer begins. */
  readonly after: number
  /** The message to be answered; all events before the thread reads it are ignored. */
  readonly queueId?: string
  /** Whether text is sent while it is generated. */
  readonly isStream: boolean
  readonly signal: AbortSignal
  readonly prefix: string
}

/**
 * Yields the answer of an agent as the events of one message. The agent's own tools and children stay hidden;
 * a call of a client's tool ends the message. Text of an agent whose answers are checked is sent after the checks.
 */
export async function* agentEvents(
  runtime: Runtime,
  thread: ThreadIdentity,
  options: AgentEventsOptions,
): AsyncGenerator<readonly StreamEvent[], void> {
  const { after, signal } = options
  const answer = new AgentAnswer(runtime, thread, options)
  yield [{ type: 'message_start', index: 0, delta: { model: thread.agent } }]
  const events = untilSettled(runtime, thread.id, { after: String(after), signal })
  try {
    for (;;) {
      const step = await events.next()
      if (step.done) {
        if (step.value) yield answer.end(step.value)
        return
      }
      const batch = answer.push(step.value.event)
      if (batch.length > 0) yield batch
    }
  } finally {
    await events.return(undefined)
  }
}

class AgentAnswer {
  readonly #thread: ThreadIdentity
  readonly #options: AgentEventsOptions
  readonly #shown: ShownEvents
  #usage: TokenUsage = zeroUsage
  #isTaken: boolean
  #index = 0
  /** The open text block, and the text of the current step that was already sent. */
  #block: string | undefined
  #given = ''
  #hasWords = false
  #isSideA = true

  constructor(runtime: Runtime, thread: ThreadIdentity, options: AgentEventsOptions) {
    this.#thread = thread
    this.#options = options
    this.#shown = new ShownEvents(runtime.registry, { hold: true })
    this.#isTaken = options.queueId === undefined
    if (this.#isTaken) this.#shown.speaks(thread.agent)
  }

  push(event: NumberedEvent['event']): readonly StreamEvent[] {
    if (event.type === 'message_added') this.#note(event)
    if (!this.#isTaken) return []
    return this.#shown.push(event).flatMap((shown): readonly StreamEvent[] => {
      switch (shown.type) {
        case 'turn_start':
          this.#isSideA = isOfSideA(shown.agentId)
          return []
        case 'text_delta':
          return this.#options.isStream && this.#isSideA
            ? this.#words(shown.blockId, shown.text)
            : []
        case 'message_added':
          return shown.message.type === 'assistant' && isOfSideA(shown.agentId)
            ? this.#message(shown.message.content)
            : []
        case 'step_reset':
          if (this.#given !== '')
            throw compatRefusal(
              'The answer broke off and was begun again; send the request again.',
              {
                code: ErrorCode.ProviderError,
                statusCode: 500,
              },
            )
          return []
        case 'turn_end':
          if (shown.outcome === 'failed') throw failed(shown.reason)
          return []
        default:
          shown satisfies NotAnswered
          return []
      }
    })
  }

  end(result: SessionResult): readonly StreamEvent[] {
    const { outcome, waiting, text, reason } = result
    if (outcome === 'failed' || outcome === 'terminated') throw failed(text || reason)
    if (outcome === 'stopped')
      throw compatRefusal('The run was stopped.', { code: ErrorCode.Cancelled, statusCode: 409 })
    if (outcome === 'waiting') return this.#calls(waiting)
    // When a tool ended the session, its result is the answer and has not been sent as a message.
    const rest = this.#hasWords || text === '' ? [] : this.#message([{ type: 'text', text }])
    return [...rest, this.#stop('end_turn')]
  }

  #calls(waiting: readonly WaitingItem[]): readonly StreamEvent[] {
    const isOurs = (item: WaitingItem): boolean =>
      item.kind === 'input' && item.threadId === this.#thread.id
    if (!waiting.every(isOurs))
      throw new ApprovalRequiredError(
        waiting.filter((item) => !isOurs(item)),
        this.#options.prefix,
      )
    return [...waiting.flatMap((item) => this.#call(item)), this.#stop('tool_use')]
  }

  #call({ threadId, interruptId, toolName, arguments: args }: WaitingItem): readonly StreamEvent[] {
    const index = this.#index++
    const call = { toolCallId: threadPartId('call', threadId, interruptId), toolName }
    return [
      { type: 'content_block_start', index, delta: { block: 'tool_call', ...call } },
      {
        type: 'tool_call_delta',
        index,
        delta: { ...call, argumentsJson: JSON.stringify(args ?? {}) },
      },
      { type: 'content_block_stop', index, delta: {} },
    ]
  }

  #note(event: Extract<NumberedEvent['event'], { type: 'message_added' }>): void {
    const queueId = 'queueId' in event ? event.queueId : undefined
    if (queueId !== undefined && queueId === this.#options.queueId) this.#isTaken = true
    if (!event.usage || !this.#isTaken) return
    const { input_tokens: input = 0, output_tokens: output = 0 } = event.usage
    const { cache_read_tokens: read = 0, cache_write_tokens: write = 0 } = event.usage
    const sum = this.#usage
    this.#usage = {
      ...sum,
      inputTokens: sum.inputTokens + input,
      outputTokens: sum.outputTokens + output,
      totalTokens: sum.totalTokens + input + output,
      cacheReadTokens: sum.cacheReadTokens + read,
      cacheWriteTokens: sum.cacheWriteTokens + write,
    }
  }

  #words(block: string, text: string): readonly StreamEvent[] {
    if (text === '') return []
    const events = this.#block === block ? [] : [...this.#close(), ...this.#open(block)]
    this.#given += text
    this.#hasWords = true
    return [...events, { type: 'text_delta', index: this.#index, delta: { text } }]
  }

  /** Completes a message: sends the part of its text that was not yet streamed, and closes the block. */
  #message(
    content: readonly { readonly type: string; readonly text?: string }[],
  ): readonly StreamEvent[] {
    const text = content.map((block) => (block.type === 'text' ? (block.text ?? '') : '')).join('')
    const rest = text.startsWith(this.#given) ? text.slice(this.#given.length) : ''
    const events = [...this.#words(this.#block ?? 'whole', rest), ...this.#close()]
    this.#given = ''
    return events
  }

  #open(block: string): readonly StreamEvent[] {
    this.#block = block
    return [{ type: 'content_block_start', index: this.#index, delta: { block: 'text' } }]
  }

  #close(): readonly StreamEvent[] {
    if (this.#block === undefined) return []
    this.#block = undefined
    return [{ type: 'content_block_stop', index: this.#index++, delta: {} }]
  }

  #stop(stopReason: 'end_turn' | 'tool_use'): StreamEvent {
    return { type: 'message_stop', index: 0, delta: { stopReason, usage: this.#usage } }
  }
}

/** Whether the agent id belongs to side A. What side B says is for side A, not for clients. */
function isOfSideA(agentId: string | undefined): boolean {
  return agentId === undefined || agentId.endsWith('/a')
}

function failed(reason: string | undefined): Error {
  const message = reason === undefined || reason === '' ? 'The run failed.' : reason
  return compatRefusal(message, { code: ErrorCode.ProviderError, statusCode: 500 })
}

/** Events that add nothing to the answer. */
// prettier-ignore
type NotAnswered = Extract<ThreadEvent, { type:
  'thread_created' | 'thread_updated' | 'status_changed' | 'message_updated' | 'message_removed' |
  'delivery_changed' | 'step_start' | 'tool_execution_start' | 'tool_execution_end' |
  'late_result' | 'interrupt_opened' | 'interrupt_answered' | 'subagent_created' |
  'subagent_updated' | 'subagent_ended' | 'agent_handoff' | 'gate_decided' | 'error_raised' |
  'usage_recorded' | 'agent_registered' | 'step_end' | 'reasoning_delta' | 'tool_call_delta' |
  'tool_execution_progress' | 'tool_call_hidden' | 'file_written' | 'file_removed' |
  'source_added' | 'evidence_added' | 'custom_event'
}>
