import { isPlainObject, type JsonValue } from '@skein/base'
import type { EmbeddingRequest, EmbeddingResult } from '../embedding.ts'
import type { ImageRequest, ImageResult } from '../image.ts'
import type { AnyRequest, MiddlewareContext } from '../contract/middleware.ts'
import type { LLMRequest, Params } from '../contract/provider.ts'
import type { Tool, ToolCall } from '../contract/tool.ts'
import type { SpanAttributes } from './telemetry.ts'
import type { ContentBlock } from '../contract/content.ts'
import type { MessageStartEvent, StopReason, StreamEvent } from '../contract/event.ts'
import { MessageFold } from '../turn/fold-message.ts'
import type { Message } from '../contract/message.ts'
import { resultText } from '../contract/result-text.ts'

/** The vendor names of the OpenTelemetry conventions, where they differ from ours. */
const providerNames: Readonly<Record<string, string>> = {
  google: 'gcp.gemini',
  'azure-openai': 'azure.ai.openai',
  xai: 'x_ai',
  mistral: 'mistral_ai',
}

function providerName(provider: string): string {
  return providerNames[provider] ?? provider
}

/** Returns the attributes that are known when the span starts. */
export function requestAttributes(
  operation: string,
  request: AnyRequest,
  { provider, modelId, streaming }: MiddlewareContext,
): SpanAttributes {
  const settings = 'settings' in request ? request.settings : undefined
  return {
    'gen_ai.operation.name': operation,
    'gen_ai.provider.name': providerName(provider),
    'gen_ai.request.model': modelId,
    'gen_ai.request.stream': streaming || undefined,
    'gen_ai.output.type':
      operation === 'generate_content'
        ? 'image'
        : 'structure' in request && request.structure
          ? 'json'
          : undefined,
    ...paramAttributes({ ...settings, ...request.params }),
    ...serverAttributes(request.config.baseUrl),
  }
}

/** The parameters of the OpenTelemetry conventions, with the vendors' names for them. */
const paramNames: Readonly<Record<string, readonly string[]>> = {
  temperature: ['temperature'],
  top_p: ['top_p', 'topP'],
  top_k: ['top_k', 'topK'],
  max_tokens: [
    'max_tokens',
    'max_completion_tokens',
    'max_output_tokens',
    'maxOutputTokens',
    'num_predict',
  ],
  frequency_penalty: ['frequency_penalty', 'frequencyPenalty'],
  presence_penalty: ['presence_penalty', 'presencePenalty'],
  seed: ['seed'],
  'choice.count': ['n', 'candidateCount'],
  stop_sequences: ['stop_sequences', 'stop', 'stopSequences'],
}

function paramAttributes(params: Params): SpanAttributes {
  // Google and Ollama put these parameters into a nested object.
  const places = [params, params['generationConfig'], params['options']].filter(isPlainObject)
  const attributes: SpanAttributes = {}
  for (const [attribute, names] of Object.entries(paramNames)) {
    const values = places.flatMap((place) => names.map((name) => place[name]))
    if (attribute === 'stop_sequences') {
      const first = values.find((value) => value !== undefined)
      const list = Array.isArray(first) ? first : [first]
      const texts = list.filter((item) => typeof item === 'string')
      if (texts.length > 0) attributes['gen_ai.request.stop_sequences'] = texts
    } else {
      const value = values.find((item) => typeof item === 'number')
      if (value !== undefined) attributes[`gen_ai.request.${attribute}`] = value
    }
  }
  return attributes
}

function serverAttributes(baseUrl: string | undefined): SpanAttributes {
  if (baseUrl === undefined || !URL.canParse(baseUrl)) return {}
  const { hostname, port, protocol } = new URL(baseUrl)
  const standard = protocol === 'http:' ? 80 : 443
  return { 'server.address': hostname, 'server.port': port === '' ? standard : Number(port) }
}

/** Returns the attributes that are known when an embedding or image call has ended. */
export function resultAttributes(result: EmbeddingResult | ImageResult): SpanAttributes {
  if ('embeddings' in result) {
    const dimensions = result.embeddings[0]?.dimensions
    return {
      'gen_ai.usage.input_tokens': result.usage.totalTokens,
      'gen_ai.embeddings.dimension.count': dimensions,
    }
  }
  const { inputTokens, outputTokens } = result.usage ?? {}
  return {
    'gen_ai.usage.input_tokens': inputTokens,
    'gen_ai.usage.output_tokens': outputTokens,
  }
}

/**
 * Returns the attributes of an `execute_tool` span that are known when a tool starts, for code that runs
 * tools without `llm`.
 */
export function toolAttributes(
  call: Pick<ToolCall, 'toolCallId' | 'toolName'>,
  tool?: Pick<Tool, 'description'>,
): SpanAttributes {
  return {
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': call.toolName,
    'gen_ai.tool.call.id': call.toolCallId,
    'gen_ai.tool.type': 'function',
    'gen_ai.tool.description': tool?.description || undefined,
  }
}

/**
 * Returns attributes with the input of an LLM request, in the JSON of the OpenTelemetry conventions. Media
 * are described by kind and size only.
 */
export function inputContent({ messages, system, tools }: LLMRequest): SpanAttributes {
  const definitions = tools.map(({ name, description, parameters }) => ({
    type: 'function',
    name,
    description,
    parameters,
  }))
  return {
    'gen_ai.input.messages': jsonText(messages.map(toMessage)),
    'gen_ai.system_instructions':
      system === undefined ? undefined : jsonText([{ type: 'text', content: system }]),
    'gen_ai.tool.definitions': tools.length > 0 ? jsonText(definitions) : undefined,
  }
}

/** Returns an attribute with the input of an embedding or image request. */
export function promptContent(request: EmbeddingRequest | ImageRequest): SpanAttributes {
  const parts =
    'prompt' in request
      ? [{ type: 'text', content: request.prompt }]
      : request.inputs.map((input) =>
          typeof input === 'string' ? { type: 'text', content: input } : toPart(input),
        )
  return { 'gen_ai.input.messages': jsonText([{ role: 'user', parts }]) }
}

const finishReasons: Readonly<Record<StopReason, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  context_window: 'length',
  tool_use: 'tool_call',
  refusal: 'content_filter',
  content_filter: 'content_filter',
  pause: 'pause',
  other: 'other',
}

type Part = Readonly<Record<string, unknown>>

function toMessage(message: Message): { role: string; parts: readonly Part[] } {
  if (message.type === 'tool_result') {
    const parts = message.results.map(({ toolCallId, result }) => ({
      type: 'tool_call_response',
      id: toolCallId,
      response: typeof result === 'string' ? result : resultText(result),
    }))
    return { role: 'tool', parts }
  }
  const content: readonly ContentBlock[] = message.content
  const calls = message.type === 'assistant' ? (message.toolCalls ?? []) : []
  const parts = calls.map(({ toolCallId, toolName, arguments: args }) => ({
    type: 'tool_call',
    id: toolCallId,
    name: toolName,
    arguments: args,
  }))
  return { role: message.type, parts: [...content.map(toPart), ...parts] }
}

function toPart(block: ContentBlock): Part {
  switch (block.type) {
    case 'text':
    case 'reasoning':
      return { type: block.type, content: block.text }
    case 'image':
    case 'document': {
      const { source, mimeType } = block
      if (source.type === 'url')
        return { type: 'uri', modality: block.type, mime_type: mimeType, uri: source.url }
      if (source.type === 'text') return { type: 'text', content: source.data }
      return { type: block.type, mime_type: mimeType, size: source.data.length }
    }
    case 'audio':
    case 'video':
    case 'binary':
      return { type: block.type, mime_type: block.mimeType, size: block.data.length }
    case 'native':
      return { type: 'native', name: block.name }
  }
}

/** Converts any value to JSON text, also bytes and cycles. */
export function jsonText(value: unknown): string {
  return typeof value === 'string' ? value : resultText(value as JsonValue)
}

/** Collects the span attributes that the events of one inference determine. */
export class AnswerRecord {
  readonly #request: LLMRequest
  readonly #streaming: boolean
  readonly #startedAt: number
  readonly #fold: MessageFold | undefined
  #start: MessageStartEvent['delta'] = {}
  #stop: MessageFold['stop']
  #firstChunkAt: number | undefined

  constructor(request: LLMRequest, { streaming }: MiddlewareContext, isCaptured: boolean) {
    this.#request = request
    this.#streaming = streaming
    this.#startedAt = request.clock.now()
    this.#fold = isCaptured ? new MessageFold() : undefined
  }

  push(events: readonly StreamEvent[]): void {
    this.#firstChunkAt ??= this.#request.clock.now()
    this.#fold?.push(events)
    for (const event of events) {
      if (event.type === 'message_start') this.#start = event.delta
      else if (event.type === 'message_stop') this.#stop = event.delta
    }
  }

  attributes(): SpanAttributes {
    const { provider, model, id } = this.#start
    const usage = this.#stop?.usage
    return {
      // The provider that answered; with a fallback it is not known when the span starts.
      ...(provider !== undefined && { 'gen_ai.provider.name': providerName(provider) }),
      'gen_ai.response.model': model,
      'gen_ai.response.id': id,
      ...(this.#streaming && this.#firstChunkAt !== undefined && { [firstChunk]: this.#delay() }),
      ...(this.#stop && {
        'gen_ai.response.finish_reasons': [this.#stop.rawStopReason ?? this.#stop.stopReason],
        'gen_ai.usage.input_tokens': usage?.inputTokens,
        'gen_ai.usage.output_tokens': usage?.outputTokens,
        'gen_ai.usage.cache_read.input_tokens': usage?.cacheReadTokens,
        'gen_ai.usage.cache_creation.input_tokens': usage?.cacheWriteTokens,
        'gen_ai.usage.reasoning.output_tokens': usage?.reasoningTokens,
      }),
      ...(this.#fold && { 'gen_ai.output.messages': this.#answer(this.#fold) }),
    }
  }

  /** Returns the answer as far as it has arrived. */
  #answer(fold: MessageFold): string {
    // This message is not part of the turn, so it does not use the call's id source.
    const message = toMessage(fold.message({ ids: () => 'telemetry', clock: this.#request.clock }))
    const reason = fold.stop ? finishReasons[fold.stop.stopReason] : 'error'
    return jsonText([{ ...message, finish_reason: reason }])
  }

  /** Returns the time to the first chunk in seconds, as the conventions require. */
  #delay(): number {
    return ((this.#firstChunkAt ?? this.#startedAt) - this.#startedAt) / 1000
  }
}

const firstChunk = 'gen_ai.response.time_to_first_chunk'
