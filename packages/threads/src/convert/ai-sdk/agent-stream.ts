import {
  type AssistantMessageJSON,
  type Clock,
  type IdSource,
  isObject,
  systemClock,
  uuidV4,
} from '@skein/base'
import type { InterruptRecord, ThreadEvent } from '../../events/event.ts'
import { UIStreamEncoder } from './encode-events.ts'
import type { UIMessage, UIMessageChunk } from './types.ts'
import { encodeUIChunk, UI_STREAM_DONE, UI_STREAM_HEADERS } from './ui-chunks.ts'

/**
 * One event of an agent's stream, as `@skein/agents` yields it. Only the shape counts, so that this package
 * needs neither `@skein/agents` nor `@skein/ai`.
 */
export interface AgentEvent {
  readonly uap?: { readonly type: string; readonly agentId: string; readonly data: unknown }
  readonly upp?: { readonly type: string; readonly index: number; readonly delta: unknown }
}

/** A streamed run of an agent: `agent.stream(…)` or `agent.resumeStream(…)`. */
export interface AgentEvents extends AsyncIterable<AgentEvent> {
  readonly result: Promise<{ readonly interrupts?: readonly InterruptRecord[] }>
  abort(reason?: unknown): void
}

/** Options of `agentUIStream` and `agentUIResponse`. */
export interface AgentUIStreamOptions {
  /**
   * The id of the assistant message. A run that continues after an approval needs the id of the message that the
   * page already shows. Default: a new id.
   */
  readonly messageId?: string
  /** Returns what the page shows when the run fails. Default: a text without details. */
  readonly errorText?: (error: unknown) => string
  readonly clock?: Clock
  readonly ids?: IdSource
}

/**
 * Turns the stream of an agent into the chunks of the AI SDK's UI message stream, as they happen. Cancelling
 * the stream aborts the run; a page that reads slowly slows the run down.
 *
 *     const stream = agentUIStream(coder.stream(text, state))
 */
export function agentUIStream(
  run: AgentEvents,
  options: AgentUIStreamOptions = {},
): ReadableStream<UIMessageChunk> {
  const chunks = encodeRun(run, options)
  return new ReadableStream<UIMessageChunk>(
    {
      async pull(controller) {
        const next = await chunks.next()
        if (next.done) controller.close()
        else controller.enqueue(next.value)
      },
      async cancel(reason) {
        run.abort(reason)
        await chunks.return()
      },
    },
    { highWaterMark: 0 },
  )
}

/**
 * Answers a request of `useChat` with the run of an agent, as server-sent events.
 *
 *     return agentUIResponse(coder.stream(text, state))
 */
export function agentUIResponse(run: AgentEvents, options: AgentUIStreamOptions = {}): Response {
  const encoder = new TextEncoder()
  const text = new TransformStream<UIMessageChunk, Uint8Array>({
    transform: (chunk, controller) => controller.enqueue(encoder.encode(encodeUIChunk(chunk))),
    flush: (controller) => controller.enqueue(encoder.encode(UI_STREAM_DONE)),
  })
  return new Response(agentUIStream(run, options).pipeThrough(text), { headers: UI_STREAM_HEADERS })
}

/** An answer for `agent.resume`, by tool call id. */
export type UIAnswers = Readonly<
  Record<string, { readonly type: 'approve' } | { readonly type: 'deny'; readonly reason: string }>
>

/**
 * Returns what the person has answered in the last message of a chat: the answers for `agent.resumeStream`,
 * by tool call id. Empty if the last message is a person's, with a new question. A page may send anything:
 * any answer but `approved: true` counts as a denial, and everything that is not an answer is left out.
 */
export function uiAnswers(messages: readonly UIMessage[]): UIAnswers {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return {}
  const parts: readonly unknown[] = [last.parts].flat() // `flat`, because it may be no list
  return Object.fromEntries(
    parts.filter(isObject).flatMap(({ state, approval, toolCallId }) => {
      if (state !== 'approval-responded' || typeof toolCallId !== 'string') return []
      const { approved, reason } = isObject(approval) ? approval : {}
      const answer: UIAnswers[string] =
        approved === true
          ? { type: 'approve' }
          : { type: 'deny', reason: textField(reason) || 'The person said no.' }
      return [[toolCallId, answer]]
    }),
  )
}

async function* encodeRun(
  run: AgentEvents,
  options: AgentUIStreamOptions,
): AsyncGenerator<UIMessageChunk, void> {
  const { clock = systemClock, ids = uuidV4, errorText = () => 'The run failed.' } = options
  const turnId = options.messageId ?? ids()
  const encoder = new UIStreamEncoder({ messageId: turnId })
  const at = (): string => new Date(clock.now()).toISOString()
  const events = new AgentEventReader({ turnId, at, ids })
  let hasStarted = false
  const start = (agentId: string): UIMessageChunk[] => {
    if (hasStarted) return []
    hasStarted = true
    return encoder.push({ type: 'turn_start', at: at(), turnId, agentId })
  }
  try {
    for await (const event of run) {
      yield* start(event.uap?.agentId ?? 'agent')
      for (const one of events.read(event)) yield* encoder.push(one)
    }
    const { interrupts = [] } = await run.result
    yield* start('agent')
    for (const interrupt of interrupts)
      yield* encoder.push({ type: 'interrupt_opened', at: at(), turnId, interrupt })
    const outcome = interrupts.length > 0 ? 'parked' : 'completed'
    yield* encoder.push({ type: 'turn_end', at: at(), turnId, outcome })
    yield* encoder.end()
  } catch (error) {
    yield* start('agent')
    yield* encoder.fail(errorText(error))
  }
}

/** A block of the message that is being streamed. */
type Block =
  | { readonly type: 'text' | 'reasoning'; text: string }
  | { readonly type: 'call'; readonly id: string; readonly name: string; json: string }
  | { readonly type: 'other' }

interface ReaderOptions {
  readonly turnId: string
  readonly at: () => string
  readonly ids: IdSource
}

/** Converts the events of an agent to events of a thread. */
class AgentEventReader {
  readonly #options: ReaderOptions
  readonly #blocks = new Map<number, Block>()
  #step = 0

  constructor(options: ReaderOptions) {
    this.#options = options
  }

  read({ uap, upp }: AgentEvent): readonly ThreadEvent[] {
    if (upp) return this.#model(upp.type, upp.index, (upp.delta ?? {}) as Delta)
    if (uap) return this.#agent(uap.type, (uap.data ?? {}) as Delta)
    return []
  }

  #model(type: string, index: number, delta: Delta): readonly ThreadEvent[] {
    const base = { at: this.#options.at(), turnId: this.#options.turnId }
    switch (type) {
      case 'message_start':
        this.#blocks.clear()
        this.#step++
        return [{ ...base, type: 'step_start', stepId: `${this.#step}` }]
      case 'text_delta':
      case 'object_delta':
      case 'reasoning_delta': {
        const kind = type === 'reasoning_delta' ? 'reasoning' : 'text'
        const text = textField(delta.text)
        const block = this.#blocks.get(index)
        if (block?.type === kind) block.text += text
        else this.#blocks.set(index, { type: kind, text })
        const blockId = `${this.#step}:${index}`
        return [{ ...base, type: `${kind}_delta`, blockId, text }]
      }
      case 'tool_call_delta': {
        const [id, name] = [textField(delta.toolCallId), textField(delta.toolName)]
        const json = textField(delta.argumentsJson)
        const block = this.#blocks.get(index)
        if (block?.type === 'call') block.json += json
        else this.#blocks.set(index, { type: 'call', id, name, json })
        return [
          { ...base, type: 'tool_call_delta', toolCallId: id, toolName: name, argumentsText: json },
        ]
      }
      case 'message_stop': {
        const finishReason = FINISH[textField(delta.stopReason)]
        return [{ ...base, type: 'message_added', message: this.#message(), finishReason }]
      }
      case 'tool_execution_end': {
        const [toolCallId, toolName] = [textField(delta.toolCallId), textField(delta.toolName)]
        const outcome = delta.isError === true ? 'failed' : 'success'
        const { result } = delta
        return [{ ...base, type: 'tool_execution_end', toolCallId, toolName, outcome, result }]
      }
      default:
        return [] // starts and stops of blocks, media and newer events have no chunk of their own
    }
  }

  #agent(type: string, data: Delta): readonly ThreadEvent[] {
    const base = { at: this.#options.at(), turnId: this.#options.turnId }
    const toolCallId = textField(data.toolCallId ?? data.parentToolCallId)
    const reference = textField(data.subagentId)
    switch (type) {
      case 'tool_progress':
        return [{ ...base, type: 'tool_execution_progress', toolCallId, output: data.output }]
      case 'subagent_start':
        return [
          {
            ...base,
            type: 'subagent_created',
            reference,
            name: textField(data.subagentType),
            toolCallId,
          },
        ]
      case 'subagent_end': {
        const outcome = data.success === true ? 'completed' : 'failed'
        return [{ ...base, type: 'subagent_ended', reference, outcome }]
      }
      default:
        return []
    }
  }

  /** Returns the message that was streamed, in the order of its blocks. */
  #message(): AssistantMessageJSON {
    const blocks = [...this.#blocks].sort(([a], [b]) => a - b).map(([, block]) => block)
    const toolCalls = blocks.flatMap((block) =>
      block.type === 'call'
        ? [{ toolCallId: block.id, toolName: block.name, arguments: argumentsOf(block.json) }]
        : [],
    )
    const content = blocks.flatMap((block) =>
      block.type === 'text' || block.type === 'reasoning'
        ? [{ type: block.type, text: block.text }]
        : [],
    )
    const { ids, at } = this.#options
    const message = { id: ids(), type: 'assistant' as const, timestamp: at(), content }
    return toolCalls.length > 0 ? { ...message, toolCalls } : message
  }
}

/** The data of an event, whose fields are checked when they are used. */
type Delta = Readonly<Partial<Record<string, unknown>>>

function textField(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function argumentsOf(json: string): Record<string, never> {
  try {
    const value: unknown = JSON.parse(json === '' ? '{}' : json)
    return typeof value === 'object' && value !== null ? (value as Record<string, never>) : {}
  } catch {
    return {} // the model's arguments were cut off; the call ends with an error that says so
  }
}

/** The stop reasons of UPP as finish reasons of a thread. */
const FINISH: Readonly<Record<string, string | undefined>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  tool_use: 'tool_call',
  content_filter: 'content_filter',
  error: 'error',
}
