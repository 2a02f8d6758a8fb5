import { isPlainObject, type JsonObject, type JsonValue, uuidV4, wellFormedJson } from '@skein/base'
import { invalidValue, type UPPError } from '../contract/error.ts'
import type {
  DocumentBlock,
  ImageBlock,
  ProviderMetadata,
  UserContent,
} from '../contract/content.ts'
import type { BlockKind, StopReason, StreamEvent } from '../contract/event.ts'
import { contentOf, type Message } from '../contract/message.ts'
import {
  allCapabilities,
  type BoundLLMModel,
  createProvider,
  type LLMRequest,
  type ModelReference,
  type ModelSettings,
  type ProviderConfig,
  type Settings,
} from '../contract/provider.ts'
import type { ToolResult } from '../contract/tool.ts'
import type { TokenUsage, Warning } from '../contract/turn.ts'
import { decodeLooseBase64 } from '../media/bytes.ts'
import { type VendorFile, vendorFileOf } from '../media/vendor-file.ts'
import { documentSource, imageSource } from '../wires/media.ts'
import { toSources } from '../wires/sources.ts'
import { droppedBlock } from '../wires/metadata.ts'
import { resultText } from '../contract/result-text.ts'
import { repairTranscript } from '../wires/transcript.ts'
import { aiSdkError, withRetries } from './failure.ts'
import { refuseUpload, toReference } from './uploads.ts'
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
 * Settings (`maxOutputTokens`, `reasoning`, …) become call options of the AI SDK; `params` are further ones, e.g.
 * `providerOptions`, and win. Keys and addresses are those that the provider was made with; of `config`, headers and
 * `retryStrategy` count.
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
  readonly identity: JsonObject
  readonly #model: AiSdkModel

  constructor(model: AiSdkModel) {
    this.identity = identityOf(model)
    this.modelId = model.modelId
    this.provider = model.provider
    this.#model = model
  }

  refuse(block: UserContent): UPPError | undefined {
    return refuseUpload(block, this.#model)
  }

  writeSettings(settings: Settings): ModelSettings {
    const { options: params, dropped } = writeSettings(settings, this.#model)
    return { params: { ...params }, dropped }
  }

  complete(request: LLMRequest): Promise<readonly StreamEvent[]> {
    return withRetries(request, this.provider, async () => {
      const warnings: Warning[] = []
      const options = callOptions(request, this.#model, warnings)
      const answer = (await this.#model.doGenerate(options as never)) as {
        readonly content: readonly AiSdkAnswerPart[]
        readonly response?: AiSdkResponse
      } & Omit<AiSdkAnswerPart, 'type'>
      tellHeaders(request, answer.response)
      // A whole answer is read like a stream: it is converted to stream parts.
      const events = new EventWriter(this.#model, warnings)
      const { id, modelId } = answer.response ?? {}
      return [
        { type: 'stream-start', warnings: answer.warnings ?? [] },
        { type: 'response-metadata', id, modelId } as AiSdkAnswerPart,
        ...answer.content.flatMap(streamed),
        { ...answer, type: 'finish' },
      ].flatMap((part) => events.write(part))
    })
  }

  async *stream(request: LLMRequest): AsyncGenerator<readonly StreamEvent[]> {
    // Until its first content has arrived, an answer can be asked for again.
    const { first, parts, events } = await withRetries(request, this.provider, async () => {
      const warnings: Warning[] = []
      const options = callOptions(request, this.#model, warnings)
      const { stream, response } = (await this.#model.doStream(options as never)) as {
        readonly stream: ReadableStream<AiSdkAnswerPart>
        readonly response?: AiSdkResponse
      }
      const reader = stream.getReader()
      const writer = new EventWriter(this.#model, warnings)
      try {
        for (;;) {
          const { done, value } = await reader.read()
          if (!done && isFrame(value)) {
            writer.write(value)
            continue
          }
          tellHeaders(request, response)
          return { first: done ? [] : writer.write(value), parts: reader, events: writer }
        }
      } catch (error) {
        reader.cancel().catch(() => {}) // the failure of the answer is what the caller needs
        throw error
      }
    })
    let isDone = false
    try {
      if (first.length > 0) yield first
      for (;;) {
        const { done, value } = await parts.read()
        if ((isDone = done)) return
        const batch = events.write(value)
        if (batch.length > 0) yield batch
      }
    } catch (error) {
      throw aiSdkError(error, request, this.provider)
    } finally {
      if (!isDone) parts.cancel().catch(() => {}) // the reader has left, or knows the failure
    }
  }
}

/** Numbers of the models whose address is not known. */
const numbers = new WeakMap<AiSdkModel, string>()

/**
 * Returns what tells a model from one of the same name at another address. No specification says where the address
 * is, so it is looked for where the providers of the AI SDK keep it; a model without one is only itself.
 */
function identityOf(model: AiSdkModel): JsonObject {
  const { config } = model as { readonly config?: unknown }
  const fields = (typeof config === 'object' && config !== null ? config : {}) as JsonRecord
  const baseUrl = textFrom(fields['baseURL']) ?? textFrom(fields['baseUrl']) ?? textFrom(fields['url'], model.modelId) // prettier-ignore
  if (baseUrl !== undefined) return { baseUrl }
  const number = numbers.get(model) ?? uuidV4()
  numbers.set(model, number)
  return { number }
}

type JsonRecord = Readonly<Record<string, unknown>>

function textFrom(value: unknown, modelId?: string): string | undefined {
  if (typeof value === 'string') return value
  if (typeof value !== 'function') return undefined
  try {
    const text: unknown = (value as (request: object) => unknown)({ path: '/', modelId })
    return typeof text === 'string' ? text : undefined
  } catch {
    return undefined // a provider that needs more to make the address
  }
}

interface AiSdkResponse {
  readonly id?: string
  readonly modelId?: string
  readonly headers?: Readonly<Record<string, string>>
}

function tellHeaders({ onHeaders }: LLMRequest, response: AiSdkResponse | undefined): void {
  if (response?.headers) onHeaders?.(response.headers)
}

/** True for parts that come before the content of an answer. */
function isFrame({ type }: AiSdkAnswerPart): boolean {
  return type === 'stream-start' || type === 'response-metadata' || type === 'raw'
}

function callOptions(
  { messages, system, tools, structure, params, settings = {}, config, signal }: LLMRequest,
  model: AiSdkModel,
  warnings: Warning[],
): AiSdkCallOptions {
  const history = repairTranscript(messages, warnings)
  const encoder = { model, warnings }
  const items = history.map((message) => encodeMessage(message, encoder))
  // What had nothing but blank text is left out, unless it is what to answer.
  const prompt = items.filter(({ content }, index) => content.length > 0 || index === items.length - 1) // prettier-ignore
  const toolEntries = tools.map(({ name, description, parameters, metadata }) => ({
    type: 'function',
    name,
    description,
    inputSchema: parameters,
    ...optionsOf(metadata),
  }))
  const { options, dropped } = writeSettings(settings, model)
  for (const name of dropped)
    warnings.push({
      code: 'setting_dropped',
      message: `${model.provider} has no ${name} ${JSON.stringify(settings[name])}; it was not sent.`,
      pointer: `/settings/${name}`,
    })
  return {
    tools: toolEntries.length > 0 ? toolEntries : undefined,
    responseFormat: structure && { type: 'json', schema: structure },
    ...options,
    ...params,
    ...mergedOptions(options.providerOptions, params['providerOptions']),
    ...(config.headers && { headers: textHeaders(config.headers) }),
    prompt: system === undefined ? prompt : [{ role: 'system', content: system }, ...prompt],
    abortSignal: signal,
  }
}

/** Joins the options of each vendor. Those of the caller win over those that settings became. */
function mergedOptions(
  own: AiSdkMetadata | undefined,
  given: unknown,
): { readonly providerOptions?: AiSdkMetadata } {
  if (!own || !isPlainObject(given)) return {}
  const vendors = Object.entries(given as AiSdkMetadata)
  const entries = vendors.map(([name, fields]) => [name, { ...own[name], ...fields }])
  return { providerOptions: { ...own, ...Object.fromEntries(entries) } }
}

function textHeaders(headers: NonNullable<ProviderConfig['headers']>): Record<string, string> {
  const present = Object.entries(headers).filter(
    ([, value]) => value !== undefined && value !== null,
  )
  return Object.fromEntries(present.map(([name, value]) => [name, String(value)]))
}

/** Writes settings as call options. Budgets of thinking and parallel calls are options of single vendors. */
function writeSettings(
  settings: Settings,
  { provider, specificationVersion }: AiSdkModel,
): { readonly options: Partial<AiSdkCallOptions>; readonly dropped: readonly (keyof Settings)[] } {
  const { temperature, topP, topK, maxOutputTokens, seed, stop, toolChoice } = settings
  const { reasoning, parallelToolCalls } = settings
  const [vendor = ''] = provider.split('.')
  const own: Record<string, JsonValue> = {}
  const unsent: (keyof Settings)[] = []
  if (typeof reasoning === 'object') {
    if (vendor === 'anthropic')
      own['thinking'] = { type: 'enabled', budgetTokens: reasoning.budget }
    else if (vendor === 'google') own['thinkingConfig'] = { thinkingBudget: reasoning.budget }
    else unsent.push('reasoning')
  } else if (reasoning !== undefined && specificationVersion === 'v3') unsent.push('reasoning')
  if (parallelToolCalls !== undefined) {
    if (vendor === 'anthropic') own['disableParallelToolUse'] = !parallelToolCalls
    else if (vendor === 'openai') own['parallelToolCalls'] = parallelToolCalls
    else unsent.push('parallelToolCalls')
  }
  const level = typeof reasoning === 'string' && specificationVersion !== 'v3' ? reasoning : undefined // prettier-ignore
  const options = present({
    temperature,
    topP,
    topK,
    maxOutputTokens,
    seed,
    stopSequences: typeof stop === 'string' ? [stop] : stop,
    toolChoice:
      typeof toolChoice === 'object'
        ? { type: 'tool', toolName: toolChoice.tool }
        : toolChoice && { type: toolChoice },
    reasoning: level === 'off' ? 'none' : level,
    providerOptions: Object.keys(own).length > 0 ? { [vendor]: own } : undefined,
  })
  return { options, dropped: unsent }
}

/** Returns the AI SDK's metadata. Entries with `api` are left out: this package wrote them, no provider knows them. */
function optionsOf(metadata: ProviderMetadata | undefined): {
  readonly providerOptions?: AiSdkMetadata
} {
  const entries = Object.entries(metadata ?? {}).filter(([, fields]) => !('api' in fields))
  return entries.length > 0 ? { providerOptions: Object.fromEntries(entries) } : {}
}

/** The model that messages are written for, and where to report what it cannot be sent. */
interface Encoder {
  readonly model: AiSdkModel
  readonly warnings: Warning[]
}

function encodeMessage(message: Message, encoder: Encoder): AiSdkMessage {
  const { model } = encoder
  const options = optionsOf(message.metadata)
  switch (message.type) {
    case 'user': {
      const visible = message.content.filter((block) => !isBlank(block))
      const content = visible.map((block) => encodeBlock(block, model))
      return { role: 'user', content, ...options }
    }
    case 'assistant': {
      const content = message.content.flatMap((block): AiSdkPart[] => {
        const own = optionsOf(block.metadata)
        switch (block.type) {
          case 'text':
            return isBlank(block) ? [] : [{ type: 'text', text: block.text, ...own }]
          case 'reasoning':
            return [{ type: block.type, text: block.text, ...own }]
          case 'image':
          case 'audio':
          case 'video':
            return [encodeBlock(block, model)]
          case 'native':
            encoder.warnings.push(droppedBlock(block, model.provider))
            return []
          default:
            return block satisfies never
        }
      })
      const calls = (message.toolCalls ?? []).map((call) => ({
        type: 'tool-call',
        toolCallId: call.toolCallId,
        toolName: call.toolName,
        input: repaired(call.arguments),
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
          output: encodeOutput(result, encoder),
          ...optionsOf(result.metadata),
        })),
        ...options,
      }
    default:
      return message satisfies never
  }
}

/** Arguments without halves of surrogate pairs, which some vendors refuse. */
function repaired(args: JsonObject): JsonObject {
  const text = JSON.stringify(args)
  const whole = wellFormedJson(text)
  return whole === text ? args : (JSON.parse(whole) as JsonObject)
}

function encodeOutput(
  { result, isError }: ToolResult,
  { model, warnings }: Encoder,
): NonNullable<AiSdkPart['output']> {
  const blocks = contentOf(result)
  const visible = blocks.filter((block) => !isBlank(block))
  if (!isError && visible.some(({ type }) => type !== 'text'))
    return { type: 'content', value: visible.map((block) => encodeBlock(block, model)) }
  // The AI SDK has failed results of text alone.
  const unsendable = visible.filter((block) => block.type !== 'text')
  for (const { type } of unsendable) {
    const message = `The ${type} of a failed result cannot be sent to ${model.provider}.`
    warnings.push({ code: 'unsupported_block', message })
  }
  const text =
    blocks.length > 0
      ? blocks.map((block) => (block.type === 'text' ? block.text : `[${block.type}, ${block.mimeType}: not shown]`)).join('') // prettier-ignore
      : resultText(result)
  return { type: isError ? 'error-text' : 'text', value: text }
}

/** True for text without a visible character, which several vendors refuse. */
function isBlank(block: { readonly type: string; readonly text?: string }): boolean {
  return block.type === 'text' && block.text?.trim() === ''
}

function encodeBlock(block: UserContent, model: AiSdkModel): AiSdkPart {
  const own = optionsOf(block.metadata)
  const isVersion3 = model.specificationVersion === 'v3'
  const file = (mediaType: string, data: AiSdkData, filename?: string): AiSdkPart => {
    // Specification v3 has the bytes, base64 text or URL itself; v4 has an object that names the kind of data.
    const source: AiSdkData =
      data instanceof URL
        ? { type: 'url', url: data }
        : { type: 'data', data: data as Uint8Array | string }
    return {
      type: 'file',
      mediaType,
      data: isVersion3 ? data : source,
      filename,
      ...own,
    }
  }
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text, ...own }
    case 'image': {
      const upload = uploadIn(block)
      if (upload) return { type: 'file', mediaType: block.mimeType, data: { type: 'reference', reference: toReference(upload, model) }, ...own } // prettier-ignore
      const { base64, url, mimeType } = imageSource(block)
      return file(mimeType, url === undefined ? base64 : new URL(url))
    }
    case 'document': {
      const upload = uploadIn(block)
      if (upload) return { type: 'file', mediaType: block.mimeType, data: { type: 'reference', reference: toReference(upload, model) }, filename: block.title, ...own } // prettier-ignore
      const source = documentSource(block)
      if ('text' in source) {
        if (!refusesTextFiles.test(model.provider))
          return file(source.mimeType, new TextEncoder().encode(source.text), block.title)
        const text = block.title ? `${block.title}\n\n${source.text}` : source.text
        return { type: 'text', text, ...own }
      }
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

/** Providers that throw for a file of text. The text itself says the same to their models. */
const refusesTextFiles =
  /^(?:azure|cerebras|deepseek|fireworks|groq|mistral|moonshotai|openai|togetherai|xai)\b/

function uploadIn({ source }: ImageBlock | DocumentBlock): VendorFile | undefined {
  return source.type === 'url' ? vendorFileOf(source.url) : undefined
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
  readonly #open = new Map<string, OpenPart>()
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
        return [this.#begin(id, part.type === 'text-start' ? 'text' : 'reasoning', {}, part)]
      case 'text-delta':
      case 'reasoning-delta': {
        // A signature comes with a delta that has no text.
        this.#note(id, providerMetadata)
        if (delta === '') return []
        const type = part.type === 'text-delta' ? 'text_delta' : 'reasoning_delta'
        return [{ type, index: this.#indexOf(id), delta: { text: delta } }]
      }
      case 'text-end':
      case 'reasoning-end':
        this.#note(id, providerMetadata)
        return [this.#end(id)]
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

  #begin(
    id: string,
    block: BlockKind,
    call: Partial<ToolNames> = {},
    { providerMetadata: metadata }: Pick<AiSdkAnswerPart, 'providerMetadata'> = {},
  ): StreamEvent {
    const index = this.#count++
    this.#open.set(id, { index, text: call.toolName ?? '', metadata })
    return { type: 'content_block_start', index, delta: { block, ...call } }
  }

  /** Adds metadata of an open part; it may come with its start, with any delta and with its end. */
  #note(id: string, metadata: AiSdkMetadata | undefined): void {
    const open = this.#open.get(id)
    if (!open || !metadata) return
    const allMetadata: Record<string, JsonObject> = { ...open.metadata }
    for (const [provider, fields] of Object.entries(metadata))
      allMetadata[provider] = { ...allMetadata[provider], ...fields }
    open.metadata = allMetadata
  }

  #end(id: string): StreamEvent {
    const { index = 0, metadata } = this.#open.get(id) ?? {}
    return { type: 'content_block_stop', index, delta: { ...(metadata && { metadata }) } }
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
    const source = data && typeof data === 'object' && 'data' in data ? data.data : data
    const bytes = typeof source === 'string' ? decodeLooseBase64(source) : source
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
    const partFields = this.#kept.length > 0 && { aiSdk: { parts: this.#kept } }
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
        metadata:
          providerMetadata || partFields ? { ...providerMetadata, ...partFields } : undefined,
        warnings: this.#warnings.length > 0 ? this.#warnings : undefined,
        sources: sources.length > 0 ? sources : undefined,
      }),
    }
  }
}

/** A part that has begun. */
interface OpenPart {
  readonly index: number
  readonly text: string
  metadata: AiSdkMetadata | undefined
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
