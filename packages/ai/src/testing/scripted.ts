import { deepFreeze } from '@skein/base'
import { ErrorCode, UPPError } from '../contract/error.ts'
import type { StreamEvent } from '../contract/event.ts'
import { isAssistantMessage, type Message } from '../contract/message.ts'
import {
  createProvider,
  type LLMCapabilities,
  type LLMRequest,
  type ModelReference,
} from '../contract/provider.ts'
import type { TokenUsage } from '../contract/turn.ts'
import type { ScriptFunction, ScriptPart, ScriptStep } from './script.ts'

/** A model that answers from a script and keeps what it was asked. */
export interface ScriptedModel extends ModelReference {
  /** Every request so far, frozen, oldest first. */
  readonly requests: readonly LLMRequest[]
}

export interface ScriptedOptions {
  /** Provider name. Default `scripted`. */
  readonly provider?: string
  readonly modelId?: string
  /** All true by default. */
  readonly capabilities?: Partial<LLMCapabilities>
  /** How text is cut into deltas: a length in characters, or by word. Default `word`. */
  readonly chunks?: number | 'word'
}

/**
 * A model for tests and examples. Each request takes the next step of the script; a function
 * instead of a list answers every request. `generate` and `stream` see the same events.
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
    requests.push(recorded(request))
    const parts = await partsOf(script, request, { name, index })
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
        complete,
        stream,
      }),
    },
  })
  return Object.freeze({ ...provider(modelId), requests })
}

const allCapabilities: LLMCapabilities = {
  streaming: true,
  tools: true,
  structuredOutput: true,
  imageInput: true,
  documentInput: true,
  videoInput: true,
  audioInput: true,
}

/** The lists are copied, because the caller goes on with its own; messages are shared. */
function recorded(request: LLMRequest): LLMRequest {
  return Object.freeze({
    ...request,
    messages: Object.freeze([...request.messages]),
    tools: Object.freeze([...request.tools]),
    params: deepFreeze({ ...request.params }),
  })
}

async function partsOf(
  script: readonly ScriptStep[] | ScriptFunction,
  request: LLMRequest,
  { name, index }: { name: string; index: number },
): Promise<readonly ScriptPart[]> {
  const step = typeof script === 'function' ? script : script[index]
  if (step === undefined) throw exhausted(script.length, request, { name, index })
  const parts = typeof step === 'function' ? await step(request, index) : step
  return Array.isArray(parts) ? parts : [parts as ScriptPart] // isArray does not narrow readonly
}

function exhausted(
  length: number,
  { messages }: LLMRequest,
  { name, index }: { name: string; index: number },
): UPPError {
  const last = messages.at(-1)
  const told = last
    ? `its last message is ${last.type} ${JSON.stringify(tell(last).slice(0, 200))}`
    : 'it has no messages'
  return new UPPError(`The script has ${length} step(s), but request ${index + 1} came: ${told}.`, {
    code: ErrorCode.InvalidRequest,
    provider: name,
    modality: 'llm',
    hint: 'Add a step, or pass a function that answers every request.',
  })
}

function tell(message: Message): string {
  if (message.type !== 'tool_result') return textOf(message)
  try {
    return JSON.stringify(message.results)
  } catch {
    return '' // a result that JSON cannot say, e.g. a bigint; only its length is lost
  }
}

/** Not the accessor: the message may be parsed JSON. */
function textOf(message: Message): string {
  if (message.type === 'tool_result') return ''
  return message.content.map((block) => ('text' in block ? block.text : '')).join('')
}

interface Performance {
  readonly parts: readonly ScriptPart[]
  readonly request: LLMRequest
  readonly index: number
  readonly name: string
  readonly modelId: string
  readonly chunks: number | 'word'
}

/** One batch per chunk of text, as if each had come in its own network read. */
async function* play(performance: Performance): AsyncGenerator<readonly StreamEvent[]> {
  const { parts, request, index, name, modelId, chunks } = performance
  const isFramed = !parts.some(startsMessage)
  const nextCallId = callIds(request.messages)
  const written: string[] = []
  let blocks = 0
  if (isFramed)
    yield [messageStart({ provider: name, model: modelId, id: `response_${index + 1}` })]
  for (const part of parts) {
    if (request.signal.aborted) throw cancelled(name, request.signal)
    switch (part.do) {
      case 'text':
      case 'reasoning':
        written.push(part.text)
        yield* textBlock(part, blocks++, chunks)
        break
      case 'call': {
        const json =
          typeof part.arguments === 'string' ? part.arguments : JSON.stringify(part.arguments)
        written.push(json)
        yield* callBlock({ ...part, toolCallId: part.toolCallId ?? nextCallId() }, json, {
          index: blocks++,
          chunks,
        })
        break
      }
      case 'emit':
        blocks += part.events.filter(({ type }) => type === 'content_block_start').length
        yield part.events
        break
      case 'wait':
        await wait(part.ms, request.signal, name)
        break
      case 'fail':
        throw part.error
      case 'stop':
        if (part.cut) return
    }
  }
  if (isFramed) yield [messageStop(parts, usageOf(request, written))]
}

function startsMessage(part: ScriptPart): boolean {
  return part.do === 'emit' && part.events.some(({ type }) => type === 'message_start')
}

/** Unique within the conversation whichever model object answers, so that resumed runs do not clash. */
function callIds(messages: readonly Message[]): () => string {
  let count = 0
  for (const message of messages)
    if (isAssistantMessage(message)) count += message.toolCalls?.length ?? 0
  return () => `call_${++count}`
}

function messageStart(delta: { provider: string; model: string; id: string }): StreamEvent {
  return { type: 'message_start', index: 0, delta }
}

function messageStop(parts: readonly ScriptPart[], counted: TokenUsage): StreamEvent {
  const hasCalls = parts.some((part) => part.do === 'call')
  const end = parts.findLast((part) => part.do === 'stop')
  return {
    type: 'message_stop',
    index: 0,
    delta: {
      stopReason: end?.stopReason ?? (hasCalls ? 'tool_use' : 'end_turn'),
      usage: Object.freeze({ ...counted, ...end?.usage }),
      ...(end?.metadata && { metadata: end.metadata }),
    },
  }
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

/** Four characters are a token, everywhere and always. */
function usageOf({ system = '', messages }: LLMRequest, written: readonly string[]): TokenUsage {
  let characters = system.length
  for (const message of messages) characters += lengthOf(message)
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

/** Counted once per message, or a long run would be counted over and over. */
function lengthOf(message: Message): number {
  const known = lengths.get(message)
  if (known !== undefined) return known
  const { length } = tell(message)
  lengths.set(message, length)
  return length
}

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
