import { deepFreeze, type JsonObject } from '@skein/base'
import type { ProviderMetadata } from '../contract/content.ts'
import { ErrorCode, UPPError, type UPPErrorOptions } from '../contract/error.ts'
import type { StopReason, StreamEvent } from '../contract/event.ts'
import {
  createProvider,
  allCapabilities,
  type LLMCapabilities,
  type LLMRequest,
  type ModelReference,
} from '../contract/provider.ts'
import type { TokenUsage } from '../contract/turn.ts'
import { withoutNulls } from '../wires/strict-nulls.ts'
import { isAssistantMessage, type Message } from '../contract/message.ts'

/** One action of a scripted model while it answers. */
export type ScriptPart =
  | {
      readonly do: 'text' | 'reasoning'
      readonly text: string
      readonly metadata?: ProviderMetadata
    }
  | {
      readonly do: 'call'
      readonly toolName: string
      /** A string is sent unchanged, so that a test can send malformed arguments. */
      readonly arguments: JsonObject | string
      readonly toolCallId?: string
      readonly metadata?: ProviderMetadata
    }
  | { readonly do: 'wait'; readonly ms: number }
  | { readonly do: 'fail'; readonly error: unknown }
  | { readonly do: 'emit'; readonly events: readonly StreamEvent[] }
  | {
      readonly do: 'stop'
      readonly stopReason?: StopReason
      readonly usage?: Partial<TokenUsage>
      readonly metadata?: ProviderMetadata
      /** Ends the answer without its `message_stop`. */
      readonly cut?: boolean
    }

/** One answer of the model: one part, several, or a function of the request that returns them. */
export type ScriptStep = ScriptPart | readonly ScriptPart[] | ScriptFunction
/** Returns the answer to a request: for a whole script, or for one step of it. */
export type ScriptFunction = (
  request: LLMRequest,
  /** The number of earlier requests. */
  index: number,
) => ScriptPart | readonly ScriptPart[] | Promise<ScriptPart | readonly ScriptPart[]>

/** Makes the model answer with a text. */
export function says(text: string, options: { metadata?: ProviderMetadata } = {}): ScriptPart {
  return { do: 'text', text, ...options }
}

/** Makes the model produce reasoning. */
export function reasons(text: string, options: { metadata?: ProviderMetadata } = {}): ScriptPart {
  return { do: 'reasoning', text, ...options }
}

/** Makes the model call a tool. Arguments given as a string are sent unchanged, well-formed or not. */
export function calls(
  toolName: string,
  args: JsonObject | string = {},
  { id, metadata }: { id?: string; metadata?: ProviderMetadata } = {},
): ScriptPart {
  return {
    do: 'call',
    toolName,
    arguments: args,
    toolCallId: id,
    metadata,
  }
}

/** Makes the request fail: with your error, or with a `UPPError` made from a message or options. */
export function fails(
  error: string | Error | ({ readonly message?: string } & Partial<UPPErrorOptions>) = {},
): ScriptPart {
  if (error instanceof Error) return { do: 'fail', error }
  const { message = 'The script says that this request fails.', ...options } =
    typeof error === 'string' ? { message: error } : error
  return {
    do: 'fail',
    error: new UPPError(message, {
      code: ErrorCode.ProviderError,
      provider: 'scripted',
      modality: 'llm',
      ...options,
    }),
  }
}

/** Makes the model pause; `Infinity` waits until the request is aborted. */
export function waits(ms: number): ScriptPart {
  return { do: 'wait', ms }
}

/**
 * Makes the model send your own events. If they include a `message_start`, no start or stop events are
 * added.
 */
export function emits(...events: readonly StreamEvent[]): ScriptPart {
  return { do: 'emit', events }
}

/** Sets how the answer ends: stop reason, usage, metadata of the message. */
export function stops(
  stopReason?: StopReason,
  options: { usage?: Partial<TokenUsage>; metadata?: ProviderMetadata } = {},
): ScriptPart {
  return { do: 'stop', stopReason, ...options }
}

/** Ends the stream here, without its terminal event. */
export function cuts(): ScriptPart {
  return { do: 'stop', cut: true }
}

/** A model that answers from a script and records its requests. */
export interface ScriptedModel extends ModelReference {
  /** All requests so far, frozen, oldest first. */
  readonly requests: readonly LLMRequest[]
}

/** The settings of a scripted model. */
export interface ScriptedOptions {
  /** The provider name. Default `scripted`. */
  readonly provider?: string
  readonly modelId?: string
  /** Overrides single capabilities. Default: all true. */
  readonly capabilities?: Partial<LLMCapabilities>
  /** How text is split into deltas: by a length in characters, or by word. Default `word`. */
  readonly chunks?: number | 'word'
}

/**
 * Makes a model for tests and examples. Each request uses the next step of the script; a script that is a
 * function answers every request. `generate` and `stream` receive the same events.
 *
 *     const model = scripted([calls('add', { a: 1, b: 2 }), says('Three.')])
 */
export function scripted(
  script: readonly ScriptStep[] | ScriptFunction,
  options: ScriptedOptions = {},
): ScriptedModel {
  const { provider: name = 'scripted', modelId = 'script', chunks = 'word' } = options
  const capabilities = Object.freeze({ ...allCapabilities, ...options.capabilities })
  const requests: LLMRequest[] = []

  async function* stream(request: LLMRequest): AsyncGenerator<readonly StreamEvent[]> {
    const index = requests.length
    // The lists are copied, because the caller may change its lists later; the messages are immutable.
    const recorded = Object.freeze({
      ...request,
      messages: Object.freeze([...request.messages]),
      tools: Object.freeze([...request.tools]),
      params: deepFreeze({ ...request.params }),
    })
    requests.push(recorded)
    const step = typeof script === 'function' ? script : script[index]
    if (step === undefined) throw exhausted(script.length, request, { name, index })
    const answer = typeof step === 'function' ? await step(request, index) : step
    // `Array.isArray` does not narrow readonly lists
    const parts = Array.isArray(answer) ? answer : [answer as ScriptPart]
    yield* play({ parts, request, index, name, modelId, chunks })
  }

  async function complete(request: LLMRequest): Promise<readonly StreamEvent[]> {
    const events: StreamEvent[] = []
    for await (const batch of stream(request)) events.push(...batch)
    return events
  }

  const provider = createProvider({
    name,
    llm: {
      capabilities,
      bind: (reference) => ({
        modelId: reference.modelId,
        provider: name,
        capabilities,
        // As with vendors that require every property, null for an optional property is read as absent.
        readData: withoutNulls,
        complete,
        stream,
      }),
    },
  })
  return Object.freeze({ ...provider(modelId), requests })
}

/** Makes the error of a request that comes after the last step of the script. */
function exhausted(
  length: number,
  { messages }: LLMRequest,
  { name, index }: { name: string; index: number },
): UPPError {
  const last = messages.at(-1)
  const lastText = last
    ? `its last message is ${last.type} ${JSON.stringify(textOf(last).slice(0, 200))}`
    : 'it has no messages'
  return new UPPError(
    `The script has ${length} step(s), but request ${index + 1} came: ${lastText}.`,
    {
      code: ErrorCode.InvalidRequest,
      provider: name,
      modality: 'llm',
      hint: 'Add a step, or pass a function that answers every request.',
    },
  )
}

/** Returns the text of a message. Its `text` accessor is not used, because the message may be parsed JSON. */
function textOf(message: Message): string {
  switch (message.type) {
    case 'user':
    case 'assistant':
      return message.content
        .map((block) => {
          switch (block.type) {
            case 'text':
            case 'reasoning':
              return block.text
            case 'image':
            case 'document':
            case 'audio':
            case 'video':
            case 'binary':
            case 'native':
              return ''
            default:
              return block satisfies never
          }
        })
        .join('')
    case 'tool_result':
      try {
        return JSON.stringify(message.results)
      } catch {
        return '' // a result that JSON cannot express, e.g. a bigint: it counts as empty
      }
    default:
      return message satisfies never
  }
}

interface Performance {
  readonly parts: readonly ScriptPart[]
  readonly request: LLMRequest
  readonly index: number
  readonly name: string
  readonly modelId: string
  readonly chunks: number | 'word'
}

/** Yields the events of one answer, each piece of text in a separate batch. */
async function* play(performance: Performance): AsyncGenerator<readonly StreamEvent[]> {
  const { parts, request, index, name, modelId, chunks } = performance
  const { signal, messages } = request
  // If the script emits its own `message_start`, no start and stop events are added.
  const isFramed = !parts.some(
    (part) => part.do === 'emit' && part.events.some(({ type }) => type === 'message_start'),
  )
  // Counting the calls in the messages keeps ids unique within a conversation, also when a resumed run
  // uses a new model object.
  let callCount = messages.flatMap((message) =>
    isAssistantMessage(message) ? (message.toolCalls ?? []) : [],
  ).length
  const lines: string[] = []
  let blocks = 0
  if (isFramed) {
    const delta = { provider: name, model: modelId, id: `response_${index + 1}` }
    yield [{ type: 'message_start', index: 0, delta }]
  }
  for (const part of parts) {
    if (signal.aborted) throw cancelled(name, signal)
    switch (part.do) {
      case 'text':
      case 'reasoning':
        lines.push(part.text)
        yield* textBlock(part, blocks++, chunks)
        break
      case 'call': {
        const json =
          typeof part.arguments === 'string' ? part.arguments : JSON.stringify(part.arguments)
        lines.push(json)
        const toolCallId = part.toolCallId ?? `call_${++callCount}`
        yield* callBlock({ ...part, toolCallId }, json, { index: blocks++, chunks })
        break
      }
      case 'emit':
        blocks += part.events.filter(({ type }) => type === 'content_block_start').length
        yield part.events
        break
      case 'wait':
        await wait(part.ms, signal, name)
        break
      case 'fail':
        throw part.error
      case 'stop':
        if (part.cut) return
        break
      default:
        part satisfies never
    }
  }
  if (!isFramed) return
  const end = parts.findLast((part) => part.do === 'stop')
  const hasCalls = parts.some((part) => part.do === 'call')
  const stopReason = end?.stopReason ?? (hasCalls ? 'tool_use' : 'end_turn')
  const usage = Object.freeze({ ...usageOf(request, lines), ...end?.usage })
  const delta = { stopReason, usage, metadata: end?.metadata }
  yield [{ type: 'message_stop', index: 0, delta }]
}

function* textBlock(
  part: Extract<ScriptPart, { do: 'text' | 'reasoning' }>,
  index: number,
  chunks: number | 'word',
): Generator<readonly StreamEvent[]> {
  const type = part.do === 'text' ? 'text_delta' : 'reasoning_delta'
  yield [{ type: 'content_block_start', index, delta: { block: part.do } }]
  for (const text of cut(part.text, chunks)) yield [{ type, index, delta: { text } }]
  yield [blockStop(index, part)]
}

function* callBlock(
  part: Extract<ScriptPart, { do: 'call' }> & { toolCallId: string },
  json: string,
  { index, chunks }: { index: number; chunks: number | 'word' },
): Generator<readonly StreamEvent[]> {
  const { toolCallId, toolName } = part
  yield [
    { type: 'content_block_start', index, delta: { block: 'tool_call', toolCallId, toolName } },
  ]
  // A call without arguments still has one delta.
  for (const argumentsJson of json === '' ? [''] : cut(json, chunks))
    yield [{ type: 'tool_call_delta', index, delta: { toolCallId, toolName, argumentsJson } }]
  yield [blockStop(index, part)]
}

function blockStop(
  index: number,
  { metadata }: Extract<ScriptPart, { do: 'text' | 'reasoning' | 'call' }>,
): StreamEvent {
  return { type: 'content_block_stop', index, delta: metadata ? { metadata } : {} }
}

function cut(text: string, chunks: number | 'word'): string[] {
  if (chunks === 'word') return text.match(/\s*\S+|\s+$/g) ?? []
  const pieces: string[] = []
  for (let start = 0; start < text.length; start += chunks)
    pieces.push(text.slice(start, start + chunks))
  return pieces
}

/** Computes a simple, reproducible usage: four characters are one token. */
function usageOf({ system = '', messages }: LLMRequest, written: readonly string[]): TokenUsage {
  let characters = system.length
  for (const message of messages) {
    // The length of each message is cached, because a long run sends it again with every request.
    const length = lengths.get(message) ?? textOf(message).length
    lengths.set(message, length)
    characters += length
  }
  const inputTokens = Math.ceil(characters / 4)
  const outputTokens = Math.ceil(written.join('').length / 4)
  return {
    inputTokens,
    outputTokens,
    totalTokens: inputTokens + outputTokens,
    cacheReadTokens: 0,
    cacheWriteTokens: 0,
  }
}

const lengths = new WeakMap<Message, number>()

function wait(ms: number, signal: AbortSignal, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = Number.isFinite(ms) ? setTimeout(done, ms) : undefined
    const onAbort = (): void => {
      clearTimeout(timer)
      reject(cancelled(name, signal))
    }
    function done(): void {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }
    signal.addEventListener('abort', onAbort, { once: true })
  })
}

function cancelled(provider: string, signal: AbortSignal): UPPError {
  return new UPPError('The scripted request was aborted.', {
    code: ErrorCode.Cancelled,
    provider,
    modality: 'llm',
    cause: signal.reason,
  })
}
