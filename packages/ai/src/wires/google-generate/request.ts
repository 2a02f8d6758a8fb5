import { encodeBase64, isPlainObject, type JsonObject, type JsonValue } from '@skein/base'
import { type AssistantMessage, contentOf, type Message, ToolResultMessage } from '../../message.ts'
import type { LLMRequest, Params } from '../../provider.ts'
import type { Tool, ToolCall, ToolResult } from '../../tool.ts'
import type { Warning } from '../../warning.ts'
import { bodyText, encodeOnce, resultKey, resultKeys } from '../encode-history.ts'
import { mergeTools } from '../tools.ts'
import { listOf, objectOf, textOf, without } from '../read-json.ts'
import { orderedBlocks, repairTranscript, resultText } from '../transcript.ts'
import { droppedBlock, foreignReasoning, nativeOf, optionsOf } from '../metadata.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'
import { API, type GoogleDialect, type GooglePart } from './types.ts'
import type { AssistantContent, UserContent } from '../../content.ts'
import { documentSource, imageSource, type MediaSource } from '../media.ts'

/** `POST /models/{id}:generateContent` or `:streamGenerateContent`. The key is never in the address. */
export function encodeRequest(
  request: LLMRequest,
  target: Target<GoogleDialect>,
  mode: RequestMode,
): EncodedRequest {
  const { params, system } = request
  const warnings: Warning[] = []
  const { messages, continuationToken } = takeContinuation(
    repairTranscript(request.messages, warnings),
    target.provider,
  )
  const tools = encodeTools(request, target.provider)
  const generationConfig = encodeGeneration(request)
  const fields = {
    ...(continuationToken !== undefined && { continuationToken }),
    ...topLevel(params),
    ...(system !== undefined && { systemInstruction: mergeSystem(system, params) }),
    ...(tools && { tools }),
    ...(generationConfig && { generationConfig }),
  }
  const contents = encodeContents(messages, target, warnings)
  const verb = mode === 'stream' ? 'streamGenerateContent?alt=sse' : 'generateContent'
  const path = `/${modelPath(target.modelId)}:${verb}`
  return { body: bodyText(fields, 'contents', contents.join(',')), path, warnings }
}

/** `gemini-x`, `models/gemini-x` and `tunedModels/x` all name a model. */
function modelPath(modelId: string): string {
  const path = modelId.split('/').map(encodeURIComponent).join('/')
  return path.includes('/') ? path : `models/${path}`
}

/**
 * An answer that ended with CONTINUATION is resumed by the same request with its token: what was
 * said so far is not repeated.
 */
function takeContinuation(
  messages: readonly Message[],
  provider: string,
): { messages: readonly Message[]; continuationToken?: string } {
  const tokenOf = (message: Message | undefined): string | undefined =>
    message?.type === 'assistant'
      ? textOf(message.metadata?.[provider]?.['continuationToken'])
      : undefined
  const continuationToken = tokenOf(messages.at(-1))
  if (continuationToken === undefined) return { messages }
  const end = messages.findLastIndex((message) => tokenOf(message) === undefined) + 1
  return { messages: messages.slice(0, end), continuationToken }
}

/** What the caller set; the structure fills its gaps. */
function encodeGeneration({ params, structure }: LLMRequest): object | undefined {
  const own = generationConfigOf(params)
  if (!structure || (own && ('responseJsonSchema' in own || 'responseSchema' in own))) return own
  return { responseMimeType: 'application/json', responseJsonSchema: structure, ...own }
}

/** A `systemInstruction` among the parameters follows the `system` option. */
function mergeSystem(system: string, params: Params): unknown {
  const given = objectOf(params['systemInstruction'])
  return { ...given, parts: [{ text: system }, ...listOf(given?.['parts'])] }
}

function encodeTools(
  { tools, params }: LLMRequest,
  provider: string,
): readonly unknown[] | undefined {
  const functionDeclarations = tools.map((tool) => encodeTool(tool, provider))
  return mergeTools({
    provider,
    tools: functionDeclarations.length > 0 ? [{ functionDeclarations }] : [],
    native: params['tools'],
    namesOf: (tool) => listOf(tool['functionDeclarations']).map((item) => objectOf(item)?.['name']),
  })
}

function encodeTool(
  { name, description, parameters, metadata }: Tool,
  provider: string,
): JsonObject {
  return {
    name,
    description,
    parametersJsonSchema: parameters as JsonObject, // a JSON Schema is JSON
    ...optionsOf(metadata, provider),
  }
}

function encodeContents(
  messages: readonly Message[],
  target: Target<GoogleDialect>,
  warnings: Warning[],
): string[] {
  const { provider, modelId, dialect } = target
  const unsigned = dialect.unsignedCall?.(modelId)
  const keys = resultKeys(`${API} ${provider} ${unsigned ?? ''}`)
  const isMarked = (call: ToolCall): boolean => hasGeneratedId(call, provider)
  const items: string[] = []
  let previous: Message | undefined
  for (const message of joinResults(messages)) {
    const before = previous?.type === 'assistant' ? previous : undefined
    const key =
      message.type === 'tool_result' ? resultKey(message, before, keys, isMarked) : keys.plain
    const calls = before?.toolCalls ?? []
    const encode = (found: Warning[]): readonly JsonObject[] =>
      encodeMessage(message, { provider, unsigned, calls, warnings: found })
    for (const item of encodeOnce(message, key, encode, warnings)) items.push(item)
    previous = message
  }
  return items
}

/** All results of a step must stand in one entry, as many as there were calls. */
function joinResults(messages: readonly Message[]): readonly Message[] {
  const isSplit = messages.some(
    ({ type }, index) => type === 'tool_result' && messages[index + 1]?.type === 'tool_result',
  )
  if (!isSplit) return messages
  const joined: Message[] = []
  for (const message of messages) {
    const last = joined.at(-1)
    if (message.type !== 'tool_result' || last?.type !== 'tool_result') joined.push(message)
    else {
      const results = [...last.results, ...message.results]
      joined[joined.length - 1] = new ToolResultMessage(results, { id: last.id })
    }
  }
  return joined
}

/**
 * Parameters that the API keeps in `generationConfig`; callers may write them there or beside it.
 * All other parameters, known to us or not, stay at the top of the body as they are, so that both
 * places can be reached. (From the public types of November 2026.)
 */
const generationFields = new Set([
  'audioTimestamp',
  'audioTranscriptionConfig',
  'candidateCount',
  'enableAffectiveDialog',
  'enableEnhancedCivicAnswers',
  'frequencyPenalty',
  'imageConfig',
  'logprobs',
  'maxOutputTokens',
  'mediaResolution',
  'modelSelectionConfig',
  'presencePenalty',
  'responseFormat',
  'responseJsonSchema',
  'responseLogprobs',
  'responseMimeType',
  'responseModalities',
  'responseSchema',
  'routingConfig',
  'seed',
  'speechConfig',
  'stopSequences',
  'temperature',
  'thinkingConfig',
  'topK',
  'topP',
  'translationConfig',
])

/** Parameters that stand at the top of the body. */
export function topLevel(params: Params): Record<string, unknown> {
  return Object.fromEntries(Object.entries(params).filter(([key]) => !generationFields.has(key)))
}

/** The caller's `generationConfig` passes unchanged; loose fields fill its gaps. */
export function generationConfigOf(params: Params): object | undefined {
  const loose = Object.entries(params).filter(([key]) => generationFields.has(key))
  const given = params['generationConfig'] as object | undefined
  return loose.length === 0 ? given : { ...Object.fromEntries(loose), ...given }
}

interface EncodeOptions {
  readonly provider: string
  /** See `GoogleDialect.unsignedCall`. */
  readonly unsigned: string | undefined
  /** The calls of the message before: what results answer. */
  readonly calls: readonly ToolCall[]
  readonly warnings: Warning[]
}

/** One message as one entry of `contents`; none when nothing of it can be said there. */
function encodeMessage(message: Message, options: EncodeOptions): readonly JsonObject[] {
  const parts = encodeParts(message, options)
  if (parts.length === 0) return []
  return [{ role: message.type === 'assistant' ? 'model' : 'user', parts }]
}

function encodeParts(message: Message, options: EncodeOptions): readonly GooglePart[] {
  switch (message.type) {
    case 'user':
      return message.content.map((block) => encodeUserBlock(block, options))
    case 'assistant':
      return signed(encodeAssistant(message, options), options)
    case 'tool_result':
      return message.results.map((result) => encodeResult(result, options))
  }
}

function encodeUserBlock(block: UserContent, { provider, warnings }: EncodeOptions): GooglePart {
  const more = optionsOf(block.metadata, provider)
  switch (block.type) {
    case 'text':
      return { text: block.text, ...more }
    case 'image':
      return { ...mediaPart(imageSource(block)), ...more }
    case 'document': {
      const source = documentSource(block)
      if (block.title !== undefined) {
        const message = `The title of a document (${block.title}) cannot be sent to ${provider}.`
        warnings.push({ code: 'unsupported_field', message })
      }
      return { ...mediaPart('text' in source ? textSource(source) : source), ...more }
    }
    default:
      return { ...mediaPart(bytesSource(block)), ...more }
  }
}

function encodeAssistant(message: AssistantMessage, options: EncodeOptions): GooglePart[] {
  const { provider } = options
  // Thoughts without a signature have no mark of their own: the message tells where they are from.
  const isOwn = message.metadata?.[provider]?.['api'] === API
  const parts: GooglePart[] = []
  for (const { block, call } of orderedBlocks(message, provider)) {
    const part = call ? encodeCall(call, provider) : encodeBlock(block, isOwn, options)
    if (part) parts.push(part)
  }
  return parts
}

function encodeBlock(
  block: AssistantContent,
  isOwn: boolean,
  { provider, warnings }: EncodeOptions,
): GooglePart | undefined {
  const native = nativeOf(block.metadata, provider, API)
  switch (block.type) {
    case 'text':
      return block.text === '' && !native ? undefined : { text: block.text, ...native }
    case 'reasoning':
      if (isOwn || native) return { text: block.text, thought: true, ...native }
      warnings.push(foreignReasoning)
      return undefined
    case 'native':
      if (!native) warnings.push(droppedBlock(block, provider))
      return native
    case 'image':
      return { ...mediaPart(imageSource(block)), ...native }
    default:
      return { ...mediaPart(bytesSource(block)), ...native }
  }
}

function encodeCall(call: ToolCall, provider: string): GooglePart {
  const native = nativeOf(call.metadata, provider, API) ?? {}
  const functionCall = {
    ...objectOf(native['functionCall']),
    ...(!hasGeneratedId(call, provider) && { id: call.toolCallId }),
    name: call.toolName,
    args: call.arguments,
  }
  return { functionCall, ...without(native, functionCallKey) }
}

const functionCallKey = new Set(['functionCall'])

/** Only the first of several calls carries a signature; one that has none gets the stand-in. */
function signed(parts: GooglePart[], { unsigned }: EncodeOptions): readonly GooglePart[] {
  if (unsigned === undefined) return parts
  const first = parts.findIndex((part) => 'functionCall' in part)
  if (first < 0 || 'thoughtSignature' in parts[first]!) return parts
  return parts.map((part, index) =>
    index === first ? { ...part, thoughtSignature: unsigned } : part,
  )
}

/** A result names its call by function name, and by id where the call has one. */
function encodeResult(result: ToolResult, options: EncodeOptions): GooglePart {
  const { provider, calls } = options
  const call = calls.find(({ toolCallId }) => toolCallId === result.toolCallId)
  const { output, parts } = encodeOutput(result.result)
  const isAnonymous = call !== undefined && hasGeneratedId(call, provider)
  return {
    functionResponse: {
      ...(!isAnonymous && { id: result.toolCallId }),
      name: call?.toolName ?? result.toolName ?? result.toolCallId,
      response: wrap(output, result.isError === true),
      ...(parts.length > 0 && { parts }),
      ...optionsOf(result.metadata, provider),
    },
  }
}

/** The vendor gave the call no id, so it gets none back. */
function hasGeneratedId({ metadata }: ToolCall, provider: string): boolean {
  const own = metadata?.[provider]
  return own?.['api'] === API && own['generatedId'] === true
}

/** Media go beside the response; text and everything else are the response. */
function encodeOutput(result: unknown): { output: JsonValue; parts: readonly GooglePart[] } {
  const blocks = contentOf(result)
  if (blocks.length === 0) return { output: toJson(result), parts: [] }
  const parts = blocks.flatMap(encodeMedia)
  const texts = blocks.flatMap(textsOf)
  return { output: texts.join('\n'), parts }
}

function textsOf(block: UserContent): readonly string[] {
  if (block.type === 'text') return [block.text]
  return block.type === 'document' && block.source.type === 'text' ? [block.source.data] : []
}

function encodeMedia(block: UserContent): readonly GooglePart[] {
  switch (block.type) {
    case 'text':
      return []
    case 'image':
      return [mediaPart(imageSource(block))]
    case 'document': {
      const source = documentSource(block)
      return 'text' in source ? [] : [mediaPart(source)]
    }
    default:
      return [mediaPart(bytesSource(block))]
  }
}

/**
 * The response must be an object, in which the API reads `output` and `error`: an object without
 * those names is the output itself, everything else is wrapped.
 */
function wrap(output: JsonValue, isError: boolean): JsonObject {
  if (isError) return { error: output }
  if (!isPlainObject(output)) return { output }
  return 'output' in output || 'error' in output ? { output } : output
}

/** What JSON makes of it; bytes, cycles and the like as `resultText` tells them. */
function toJson(result: unknown): JsonValue {
  if (typeof result === 'string') return result
  const text = resultText(result)
  try {
    return text === '' ? null : (JSON.parse(text) as JsonValue)
  } catch {
    return text
  }
}

/** Media inline or by address. */
export function mediaPart({ base64, url, mimeType }: MediaSource): GooglePart {
  return url === undefined
    ? { inlineData: { mimeType, data: base64 } }
    : { fileData: { mimeType, fileUri: url } }
}

/** Text as a file of its type. */
function textSource({ text, mimeType }: { text: string; mimeType: string }): MediaSource {
  return {
    base64: encodeBase64(new TextEncoder().encode(text)),
    mimeType: mimeType || 'text/plain',
  }
}

export function bytesSource({
  data,
  mimeType,
}: {
  data: Uint8Array
  mimeType: string
}): MediaSource {
  return { base64: encodeBase64(data), mimeType }
}
