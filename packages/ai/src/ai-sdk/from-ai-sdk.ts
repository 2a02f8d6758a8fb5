import type { JsonObject } from '@skein/base'
import { cancelledError, ErrorCode, invalidValue, isUPPError, UPPError } from '../contract/error.ts'
import type { ProviderMetadata, UserContent } from '../contract/content.ts'
import type { BlockKind, StopReason, StreamEvent } from '../contract/event.ts'
import { contentOf, type Message } from '../contract/message.ts'
import {
  allCapabilities,
  type BoundLLMModel,
  createProvider,
  type LLMRequest,
  type ModelReference,
} from '../contract/provider.ts'
import type { ToolResult } from '../contract/tool.ts'
import type { TokenUsage, Warning } from '../contract/turn.ts'
import { decodeLooseBase64 } from '../media/bytes.ts'
import { documentSource, imageSource } from '../wires/media.ts'
import { toSources } from '../wires/sources.ts'
import { repairTranscript, resultText } from '../wires/transcript.ts'
import type {
  AiSdkAnswerPart,
  AiSdkCallOptions,
  AiSdkData,
  AiSdkMessage,
  AiSdkMetadata,
  AiSdkModel,
  AiSdkPart,
  AiSdkUsage,
} from './types.ts'

/**
 * Makes a model of this package from a model of any AI SDK provider, e.g. of Bedrock or Vertex:
 *
 *     llm({ model: fromAiSdk(createAmazonBedrock({ region })('anthropic.claude-sonnet-4-5')) })
 *
 * `params` are call options of the AI SDK: `maxOutputTokens`, `temperature`, `toolChoice`, `providerOptions`.
 * Keys, addresses and headers are those that the provider was made with; `config` is ignored.
 */
export function fromAiSdk(model: AiSdkModel): ModelReference {
  const { specificationVersion: version } = model
  if (version !== 'v3' && version !== 'v4') {
    throw invalidValue(
      `The AI SDK model has the specification version ${String(version)}.`,
      'Use a provider for ai 6 or 7 (v3 or v4).',
    )
  }
  const provider = createProvider({
    name: model.provider,
    llm: { capabilities: allCapabilities, bind: () => new AdaptedModel(model) },
  })
  return provider(model.modelId)
}

class AdaptedModel implements BoundLLMModel {
  readonly modelId: string
  readonly provider: string
  readonly capabilities: BoundLLMModel['capabilities'] = allCapabilities
  readonly #model: AiSdkModel

  constructor(model: AiSdkModel) {
    this.modelId = model.modelId
    this.provider = model.provider
    this.#model = model
  }

  async complete(request: LLMRequest): Promise<readonly StreamEvent[]> {
    const warnings: Warning[] = []
    const options = callOptions(request, this.#model, warnings)
    try {
      const answer = (await this.#model.doGenerate(options as never)) as {
        readonly content: readonly AiSdkAnswerPart[]
        readonly response?: { readonly id?: string; readonly modelId?: string }
      } & Omit<AiSdkAnswerPart, 'type'>
      // A whole answer is read like a stream: it is converted to stream parts.
      const events = new EventWriter(this.#model, warnings)
      return [
        { type: 'stream-start', warnings: answer.warnings ?? [] },
        { type: 'response-metadata', ...answer.response },
        ...answer.content.flatMap(streamed),
        { ...answer, type: 'finish' },
      ].flatMap((part) => events.write(part))
    } catch (error) {
      throw this.#failure(error, request.signal)
    }
  }

  async *stream(request: LLMRequest): AsyncGenerator<readonly StreamEvent[]> {
    const warnings: Warning[] = []
    const options = callOptions(request, this.#model, warnings)
    try {
      const { stream } = (await this.#model.doStream(options as never)) as {
        readonly stream: ReadableStream<AiSdkAnswerPart>
      }
      const events = new EventWriter(this.#model, warnings)
      for await (const part of stream) {
        const batch = events.write(part)
        if (batch.length > 0) yield batch
      }
    } catch (error) {
      throw this.#failure(error, request.signal)
    }
  }

  /** Converts an error of the AI SDK. Its message may quote the key, so only the HTTP status is passed on. */
  #failure(error: unknown, signal: AbortSignal): unknown {
    const { provider } = this
    if (isUPPError(error)) return error
    if (signal.aborted) return cancelledError(signal, { provider, modality: 'llm' })
    const { statusCode } = (error ?? {}) as { readonly statusCode?: number }
    const what = statusCode === undefined ? 'failed' : `answered HTTP ${statusCode}`
    return new UPPError(`${provider} ${what}.`, {
      code: codes[statusCode ?? 0] ?? ErrorCode.ProviderError,
      provider,
      modality: 'llm',
      statusCode,
      hint: 'The error of the AI SDK is not kept, because its text may contain the key. Call its model directly to see it.',
    })
  }
}

const codes: Readonly<Record<number, ErrorCode>> = {
  400: ErrorCode.InvalidRequest,
  401: ErrorCode.AuthenticationFailed,
  403: ErrorCode.AuthenticationFailed,
  404: ErrorCode.ModelNotFound,
  422: ErrorCode.InvalidRequest,
  429: ErrorCode.RateLimited,
}

function callOptions(
  { messages, system, tools, structure, params, signal }: LLMRequest,
  model: AiSdkModel,
  warnings: Warning[],
): AiSdkCallOptions {
  const history = repairTranscript(messages, warnings)
  const isVersion3 = model.specificationVersion === 'v3'
  const prompt = history.map((message) => encodeMessage(message, isVersion3))
  const declared = tools.map(({ name, description, parameters }) => ({
    type: 'function',
    name,
    description,
    inputSchema: parameters,
  }))
  return {
    tools: declared.length > 0 ? declared : undefined,
    responseFormat: structure && { type: 'json', schema: structure },
    ...params,
    prompt: system === undefined ? prompt : [{ role: 'system', content: system }, ...prompt],
    abortSignal: signal,
  }
}

/** Returns the AI SDK's metadata. Entries with `api` are left out: this package wrote them, no provider knows them. */
function optionsOf(metadata: ProviderMetadata | undefined): {
  readonly providerOptions?: AiSdkMetadata
} {
  const entries = Object.entries(metadata ?? {}).filter(([, fields]) => !('api' in fields))
  return entries.length > 0 ? { providerOptions: Object.fromEntries(entries) } : {}
}

function encodeMessage(message: Message, isVersion3: boolean): AiSdkMessage {
  const options = optionsOf(message.metadata)
  switch (message.type) {
    case 'user': {
      const content = message.content.map((block) => encodeBlock(block, isVersion3))
      return { role: 'user', content, ...options }
    }
    case 'assistant': {
      const content = message.content.flatMap((block): AiSdkPart[] => {
        const own = optionsOf(block.metadata)
        switch (block.type) {
          case 'text':
          case 'reasoning':
            return [{ type: block.type, text: block.text, ...own }]
          case 'image':
          case 'audio':
          case 'video':
            return [encodeBlock(block, isVersion3)]
          case 'native':
            return []
          default:
            return block satisfies never
        }
      })
      const calls = (message.toolCalls ?? []).map((call) => ({
        type: 'tool-call',
        toolCallId: call.toolCallId,
        toolName: call.toolName,
        input: call.arguments,
        ...optionsOf(call.metadata),
      }))
      return { role: 'assistant', content: [...content, ...calls], ...options }
    }
    case 'tool_result':
      return {
        role: 'tool',
        content: message.results.map((result) => ({
          type: 'tool-result',
          toolCallId: result.toolCallId,
          toolName: result.toolName ?? '',
          output: encodeOutput(result, isVersion3),
          ...optionsOf(result.metadata),
        })),
        ...options,
      }
    default:
      return message satisfies never
  }
}

function encodeOutput(
  { result, isError }: ToolResult,
  isVersion3: boolean,
): NonNullable<AiSdkPart['output']> {
  const blocks = contentOf(result)
  if (!isError && blocks.some(({ type }) => type !== 'text')) {
    return { type: 'content', value: blocks.map((block) => encodeBlock(block, isVersion3)) }
  }
  const text =
    blocks.length > 0
      ? blocks.map((block) => (block.type === 'text' ? block.text : '')).join('')
      : resultText(result)
  return { type: isError ? 'error-text' : 'text', value: text }
}

function encodeBlock(block: UserContent, isVersion3: boolean): AiSdkPart {
  const own = optionsOf(block.metadata)
  const file = (mediaType: string, data: AiSdkData, filename?: string): AiSdkPart => {
    // Specification v3 has the bytes, base64 text or URL itself; v4 has an object that names the kind of data.
    const named: AiSdkData =
      data instanceof URL
        ? { type: 'url', url: data }
        : { type: 'data', data: data as Uint8Array | string }
    return {
      type: 'file',
      mediaType,
      data: isVersion3 ? data : named,
      filename,
      ...own,
    }
  }
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text, ...own }
    case 'image': {
      const { base64, url, mimeType } = imageSource(block)
      return file(mimeType, url === undefined ? base64 : new URL(url))
    }
    case 'document': {
      const source = documentSource(block)
      if ('text' in source)
        return file(source.mimeType, new TextEncoder().encode(source.text), block.title)
      const { base64, url, mimeType } = source
      return file(mimeType, url === undefined ? base64 : new URL(url), block.title)
    }
    case 'audio':
    case 'video':
    case 'binary':
      return file(block.mimeType, block.data)
    default:
      return block satisfies never
  }
}

/** Converts a part of a whole answer to the parts that a stream would send for it (start, delta, end). */
function streamed(part: AiSdkAnswerPart, index: number): readonly AiSdkAnswerPart[] {
  if (part.type !== 'text' && part.type !== 'reasoning') return [part]
  const { type, text = '', providerMetadata } = part
  const id = `${type} ${index}`
  return [
    { type: `${type}-start`, id },
    { type: `${type}-delta`, id, delta: text },
    { type: `${type}-end`, id, providerMetadata },
  ]
}

/** Converts the parts of one answer to events. */
class EventWriter {
  readonly #model: AiSdkModel
  readonly #warnings: Warning[]
  readonly #open = new Map<string, { readonly index: number; text: string }>()
  /** Parts that have no event (sources, tools that the provider ran); they are kept in the message's metadata. */
  readonly #kept: JsonObject[] = []
  #start: { readonly id?: string; readonly modelId?: string } = {}
  #isStarted = false
  #count = 0

  constructor(model: AiSdkModel, warnings: Warning[]) {
    this.#model = model
    this.#warnings = warnings
  }

  write(part: AiSdkAnswerPart): readonly StreamEvent[] {
    if (part.type === 'stream-start') {
      for (const { type, feature, details, message } of part.warnings ?? []) {
        const text = [feature, details ?? message].filter(Boolean).join(': ')
        this.#warnings.push({ code: `ai_sdk_${type}`, message: text })
      }
      return []
    }
    if (part.type === 'response-metadata') {
      this.#start = part
      return []
    }
    if (part.type === 'error') throw part.error
    const events = this.#events(part)
    if (this.#isStarted || events.length === 0) return events
    this.#isStarted = true
    const { id, modelId: model = this.#model.modelId } = this.#start
    const delta = present({ provider: this.#model.provider, model, id })
    return [{ type: 'message_start', index: 0, delta }, ...events]
  }

  #events(part: AiSdkAnswerPart): readonly StreamEvent[] {
    const { id = '', delta = '', providerMetadata } = part
    const metadata = providerMetadata && { metadata: providerMetadata }
    switch (part.type) {
      case 'text-start':
      case 'reasoning-start':
        return [this.#begin(id, part.type === 'text-start' ? 'text' : 'reasoning')]
      case 'text-delta':
      case 'reasoning-delta': {
        const type = part.type === 'text-delta' ? 'text_delta' : 'reasoning_delta'
        return [{ type, index: this.#indexOf(id), delta: { text: delta } }]
      }
      case 'text-end':
      case 'reasoning-end':
        return [{ type: 'content_block_stop', index: this.#indexOf(id), delta: { ...metadata } }]
      case 'tool-input-start':
        return part.providerExecuted
          ? []
          : [this.#begin(id, 'tool_call', { toolCallId: id, toolName: part.toolName ?? '' })]
      case 'tool-input-delta':
        return this.#open.has(id) ? [this.#argumentsOf(id, delta)] : []
      case 'tool-call':
        return part.providerExecuted ? this.#keep(part) : this.#call(part, metadata)
      case 'file':
        return this.#file(part, metadata)
      case 'finish':
        return [this.#stop(part)]
      case 'tool-input-end':
      case 'raw':
        return []
      default:
        return this.#keep(part)
    }
  }

  #begin(id: string, block: BlockKind, call: Partial<ToolNames> = {}): StreamEvent {
    const index = this.#count++
    this.#open.set(id, { index, text: call.toolName ?? '' })
    return { type: 'content_block_start', index, delta: { block, ...call } }
  }

  #indexOf(id: string): number {
    return this.#open.get(id)?.index ?? 0
  }

  #argumentsOf(id: string, argumentsJson: string): StreamEvent {
    const { index, text: toolName } = this.#open.get(id)!
    return { type: 'tool_call_delta', index, delta: { toolCallId: id, toolName, argumentsJson } }
  }

  /** Ends a tool call, and also starts it if its arguments were not streamed before. */
  #call(
    { toolCallId = '', toolName = '', input = '' }: AiSdkAnswerPart,
    metadata: { readonly metadata: ProviderMetadata } | undefined,
  ): readonly StreamEvent[] {
    const events: StreamEvent[] = []
    if (!this.#open.has(toolCallId))
      events.push(
        this.#begin(toolCallId, 'tool_call', { toolCallId, toolName }),
        this.#argumentsOf(toolCallId, input),
      )
    const index = this.#indexOf(toolCallId)
    return [...events, { type: 'content_block_stop', index, delta: { ...metadata } }]
  }

  #file(
    { mediaType = '', data }: AiSdkAnswerPart,
    metadata: { readonly metadata: ProviderMetadata } | undefined,
  ): readonly StreamEvent[] {
    const kind = mediaType.split('/')[0]
    const given = data && typeof data === 'object' && 'data' in data ? data.data : data
    const bytes = typeof given === 'string' ? decodeLooseBase64(given) : given
    if (!(bytes instanceof Uint8Array)) return []
    if (kind !== 'image' && kind !== 'audio' && kind !== 'video') return []
    const start = this.#begin(`file ${this.#count}`, kind)
    const { index } = start
    return [
      start,
      { type: `${kind}_delta`, index, delta: { data: bytes, mimeType: mediaType } },
      { type: 'content_block_stop', index, delta: { ...metadata } },
    ]
  }

  #keep({ type, ...rest }: AiSdkAnswerPart): readonly StreamEvent[] {
    this.#kept.push(JSON.parse(JSON.stringify({ type, ...rest })) as JsonObject)
    return []
  }

  #stop({ finishReason, usage, providerMetadata }: AiSdkAnswerPart): StreamEvent {
    const kept = this.#kept.length > 0 && { aiSdk: { parts: this.#kept } }
    const sources = this.#kept.flatMap((part) =>
      part['type'] === 'source'
        ? toSources(part, part['url'] ?? part['id'], part['title'] ?? part['filename'])
        : [],
    )
    return {
      type: 'message_stop',
      index: 0,
      delta: present({
        stopReason: stopReasons[finishReason?.unified ?? ''] ?? 'other',
        rawStopReason: finishReason?.raw,
        usage: toUsage(usage),
        metadata: providerMetadata || kept ? { ...providerMetadata, ...kept } : undefined,
        warnings: this.#warnings.length > 0 ? this.#warnings : undefined,
        sources: sources.length > 0 ? sources : undefined,
      }),
    }
  }
}

interface ToolNames {
  readonly toolCallId: string
  readonly toolName: string
}

const stopReasons: Readonly<Record<string, StopReason>> = {
  stop: 'end_turn',
  length: 'max_tokens',
  'content-filter': 'content_filter',
  'tool-calls': 'tool_use',
}

function toUsage(usage: AiSdkUsage | undefined): TokenUsage {
  const { inputTokens, outputTokens, raw } = usage ?? { inputTokens: {}, outputTokens: {} }
  const input = inputTokens.total ?? 0
  const output = outputTokens.total ?? 0
  return present({
    inputTokens: input,
    outputTokens: output,
    totalTokens: input + output,
    cacheReadTokens: inputTokens.cacheRead ?? 0,
    cacheWriteTokens: inputTokens.cacheWrite ?? 0,
    reasoningTokens: outputTokens.reasoning,
    raw,
  })
}

/** Removes the members that are undefined, so that callers see only keys that have a value. */
export function present<T extends object>(members: T): T {
  // The cast is safe, because only undefined members are removed.
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as T
}
