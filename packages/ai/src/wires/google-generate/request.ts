import { encodeBase64, isPlainObject, type JsonObject, type JsonValue } from '@skein/base'
import type {
  AssistantContent,
  DocumentBlock,
  ImageBlock,
  UserContent,
} from '../../contract/content.ts'
import type { UPPError } from '../../contract/error.ts'
import { contentOf, ToolResultMessage, type Message } from '../../contract/message.ts'
import type { LLMRequest, Params } from '../../contract/provider.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { takeContinuation } from '../continuation.ts'
import { bodyText } from '../encode-history.ts'
import { encodeOnce } from '../encode-once.ts'
import { toGoogleSchema, toolSchema } from '../google-schema.ts'
import { resultKey, resultKeys } from '../result-key.ts'
import {
  bytesSource,
  documentSource,
  imageSource,
  type MediaSource,
  refuseForeign,
  uploadOf,
} from '../media.ts'
import { droppedBlock, foreignReasoning, nativeOf, optionsOf } from '../metadata.ts'
import { listOf, objectOf, without } from '../read-json.ts'
import { replacedFields } from '../replaced-fields.ts'
import { mergeTools } from '../merge-tools.ts'
import { resultText } from '../../contract/result-text.ts'
import { repairTranscript } from '../transcript.ts'
import { orderedBlocks } from '../block-order.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'
import { API, type GoogleDialect, type GooglePart } from './types.ts'

/**
 * Writes a request of `POST /models/{id}:generateContent` or `:streamGenerateContent`. The API key is
 * never part of the address.
 */
export function encodeRequest(
  request: LLMRequest,
  target: Target<GoogleDialect>,
  mode: RequestMode,
): EncodedRequest {
  const { params, system, structure } = request
  const { provider, modelId } = target
  const warnings: Warning[] = [...replacedFields(params, { contents: true })]
  const { messages, token: continuationToken } = takeContinuation(
    repairTranscript(request.messages, warnings),
    provider,
    'continuationToken',
  )
  const functionDeclarations = request.tools.map((tool) => ({
    name: tool.name,
    description: tool.description,
    parametersJsonSchema: toolSchema(tool.parameters) as JsonObject, // a JSON Schema is JSON
    ...optionsOf(tool.metadata, provider),
  }))
  const tools = mergeTools({
    provider,
    tools: functionDeclarations.length > 0 ? [{ functionDeclarations }] : [],
    native: params['tools'],
    namesOf: (tool) => listOf(tool['functionDeclarations']).map((item) => objectOf(item)?.['name']),
  })
  const fields: Record<string, unknown> = { continuationToken, ...topLevel(params), tools }
  if (system !== undefined) {
    // A `systemInstruction` in the parameters is added after the `system` option.
    const ownInstruction = params['systemInstruction']
    const ownParams =
      typeof ownInstruction === 'string'
        ? { parts: [{ text: ownInstruction }] }
        : objectOf(ownInstruction)
    const parts = [{ text: system }, ...listOf(ownParams?.['parts'])]
    fields['systemInstruction'] = { ...ownParams, parts }
  }
  const generation = generationConfigOf(params)
  const hasSchema =
    generation && ('responseJsonSchema' in generation || 'responseSchema' in generation)
  // Fields that the caller set in `generationConfig` override those of `structure`.
  fields['generationConfig'] =
    structure && !hasSchema
      ? {
          responseMimeType: 'application/json',
          responseJsonSchema: toGoogleSchema(structure, warnings),
          ...generation,
        }
      : generation
  const contents = encodeContents(messages, target, warnings)
  // `gemini-x`, `models/gemini-x` and `tunedModels/x` are all valid model ids; only the first needs a
  // prefix.
  const name = modelId.split('/').map(encodeURIComponent).join('/')
  const verb = mode === 'stream' ? 'streamGenerateContent?alt=sse' : 'generateContent'
  const path = `/${name.includes('/') ? name : `models/${name}`}:${verb}`
  return { body: bodyText(fields, 'contents', contents.join(',')), path, warnings }
}

/**
 * Parameters that the API reads in `generationConfig`; callers may set them there or directly in
 * `params`. All other parameters, known or unknown, are sent unchanged at the top of the body. (From
 * the public types of November 2026.)
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

/** Returns the parameters that belong at the top of the body. */
export function topLevel(params: Params): Record<string, unknown> {
  return Object.fromEntries(Object.entries(params).filter(([key]) => !generationFields.has(key)))
}

/** Returns the caller's `generationConfig`, completed with fields that were given directly in `params`. */
export function generationConfigOf(params: Params): object | undefined {
  const loose = Object.entries(params).filter(([key]) => generationFields.has(key))
  const ownParams = params['generationConfig'] as object | undefined
  return loose.length === 0 ? ownParams : { ...Object.fromEntries(loose), ...ownParams }
}

/** Writes `contents` as JSON texts. */
function encodeContents(
  messages: readonly Message[],
  target: Target<GoogleDialect>,
  warnings: Warning[],
): string[] {
  const { provider, modelId, dialect } = target
  const unsignedRule = dialect.unsignedCall?.(modelId)
  const keys = resultKeys(`${API} ${provider} ${unsignedRule ?? ''}`)
  const isMarked = (call: ToolCall): boolean => hasGeneratedId(call, provider)
  const items: string[] = []
  let previous: Message | undefined
  for (const message of joinResults(messages)) {
    const before = previous?.type === 'assistant' ? previous : undefined
    const key =
      message.type === 'tool_result' ? resultKey(message, before, keys, isMarked) : keys.plain
    const calls = before?.toolCalls ?? []
    const role = message.type === 'assistant' ? 'model' : 'user'
    // Each message is one entry, or none if the format can express nothing of it.
    const encode = (found: Warning[]): readonly JsonObject[] => {
      const parts = encodeParts(message, {
        provider,
        unsigned: unsignedRule,
        calls,
        warnings: found,
      })
      return parts.length > 0 ? [{ role, parts }] : []
    }
    for (const item of encodeOnce(message, key, encode, warnings)) {
      let joined = item
      // The API accepts calls only right after a user entry, so calls are merged into the model entries before them.
      if (message.type === 'assistant' && message.hasToolCalls)
        while (items.at(-1)?.startsWith(ANSWER))
          joined = `${items.pop()!.slice(0, -2)},${joined.slice(ANSWER.length)}`
      items.push(joined)
    }
    previous = message
  }
  return items
}

/** The beginning of the JSON text of every model entry; the text ends with `]}`. */
const ANSWER = '{"role":"model","parts":['

/** Joins neighbouring tool results, because the API requires all results of a step in one entry. */
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

interface EncodeOptions {
  readonly provider: string
  /** The signature for unsigned calls, see `GoogleDialect.unsignedCall`. */
  readonly unsigned: string | undefined
  /** The calls of the preceding message, which the results answer. */
  readonly calls: readonly ToolCall[]
  readonly warnings: Warning[]
}

function encodeParts(message: Message, options: EncodeOptions): readonly GooglePart[] {
  const { provider, unsigned: unsignedRule } = options
  switch (message.type) {
    case 'user':
      // The API refuses a part with an empty text.
      return message.content
        .filter((block) => block.type !== 'text' || block.text !== '')
        .map((block) => encodeUserBlock(block, options))
    case 'assistant': {
      // Thoughts without a signature have no metadata, so the message's metadata decides whether they
      // are from this vendor.
      const isOwn = message.metadata?.[provider]?.['api'] === API
      const parts: GooglePart[] = []
      for (const { block, call } of orderedBlocks(message, provider)) {
        if (call) {
          const native = nativeOf(call.metadata, provider, API) ?? {}
          const functionCall = {
            ...objectOf(native['functionCall']),
            id: hasGeneratedId(call, provider) ? undefined : call.toolCallId,
            name: call.toolName,
            args: call.arguments,
          }
          parts.push({ functionCall, ...without(native, functionCallKey) })
        } else {
          const part = encodeBlock(block, isOwn, options)
          if (part) parts.push(part)
        }
      }
      // Google signs only the first of several calls. If the first call has no signature, the
      // documented substitute is set.
      const first = parts.findIndex((part) => 'functionCall' in part)
      if (unsignedRule !== undefined && first >= 0 && !('thoughtSignature' in parts[first]!)) {
        parts[first] = { ...parts[first], thoughtSignature: unsignedRule }
      }
      return parts
    }
    case 'tool_result':
      return message.results.map((result) => encodeResult(result, options))
    default:
      return message satisfies never
  }
}

function encodeUserBlock(block: UserContent, { provider, warnings }: EncodeOptions): GooglePart {
  const more = optionsOf(block.metadata, provider)
  switch (block.type) {
    case 'text':
      return { text: block.text, ...more }
    case 'image':
      return { ...(uploadPart(block, provider) ?? mediaPart(imageSource(block))), ...more }
    case 'document': {
      if (block.title !== undefined) {
        const message = `The title of a document (${block.title}) cannot be sent to ${provider}.`
        warnings.push({ code: 'unsupported_field', message })
      }
      const upload = uploadPart(block, provider)
      if (upload) return { ...upload, ...more }
      const source = documentSource(block)
      if (!('text' in source)) return { ...mediaPart(source), ...more }
      // A document given as text is sent as a file of its type.
      const base64 = encodeBase64(new TextEncoder().encode(source.text))
      return { ...mediaPart({ base64, mimeType: source.mimeType || 'text/plain' }), ...more }
    }
    case 'audio':
    case 'video':
    case 'binary':
      return { ...mediaPart(bytesSource(block)), ...more }
    default:
      return block satisfies never
  }
}

/** See `Wire.refuse`. Other types of files than the API documents are left to it to judge: they are many. */
export function refuse(
  block: UserContent,
  { provider }: Target<GoogleDialect>,
): UPPError | undefined {
  const isAddressed = block.type === 'image' || block.type === 'document'
  return isAddressed ? refuseForeign(block, provider) : undefined
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
    case 'audio':
    case 'video':
      return { ...mediaPart(bytesSource(block)), ...native }
    default:
      return block satisfies never
  }
}

const functionCallKey = new Set(['functionCall'])

/**
 * Checks whether the call's id was generated here because the vendor sent none; it is then not sent
 * back.
 */
function hasGeneratedId({ metadata }: ToolCall, provider: string): boolean {
  const own = metadata?.[provider]
  return own?.['api'] === API && own['generatedId'] === true
}

/**
 * Writes a result. The result names its call by function name, and by id if the vendor sent an id. Media
 * are sent in `parts` of the function response; text and everything else are sent in its `response`.
 */
function encodeResult(result: ToolResult, { provider, calls }: EncodeOptions): GooglePart {
  const call = calls.find(({ toolCallId }) => toolCallId === result.toolCallId)
  const isAnonymous = call !== undefined && hasGeneratedId(call, provider)
  const blocks = contentOf(result.result)
  const texts: string[] = []
  const parts: GooglePart[] = []
  for (const block of blocks) {
    const { text, part } = encodeResultBlock(block, provider)
    if (text !== undefined) texts.push(text)
    if (part) parts.push(part)
  }
  const output = blocks.length > 0 ? texts.join('\n') : toJson(result.result)
  return {
    functionResponse: {
      id: isAnonymous ? undefined : result.toolCallId,
      name: call?.toolName ?? result.toolName ?? result.toolCallId,
      response: result.isError === true ? { error: output } : wrap(output),
      parts: parts.length > 0 ? parts : undefined,
      ...optionsOf(result.metadata, provider),
    },
  }
}

function encodeResultBlock(
  block: UserContent,
  provider: string,
): { text?: string; part?: GooglePart } {
  switch (block.type) {
    case 'text':
      return { text: block.text }
    case 'image':
      return { part: uploadPart(block, provider) ?? mediaPart(imageSource(block)) }
    case 'document': {
      const part = uploadPart(block, provider)
      if (part) return { part }
      const source = documentSource(block)
      return 'text' in source ? { text: source.text } : { part: mediaPart(source) }
    }
    case 'audio':
    case 'video':
    case 'binary':
      return { part: mediaPart(bytesSource(block)) }
    default:
      return block satisfies never
  }
}

/**
 * Makes the response an object, as the API requires. The API treats `output` and `error` in it
 * specially: an object without these names is used as it is, everything else is wrapped in `output`.
 */
function wrap(output: JsonValue): JsonObject {
  if (!isPlainObject(output)) return { output }
  return 'output' in output || 'error' in output ? { output } : output
}

/**
 * Converts a result to JSON. Values that JSON cannot express (bytes, cycles) become text, as in
 * `resultText`.
 */
function toJson(result: unknown): JsonValue {
  if (typeof result === 'string') return result
  const text = resultText(result)
  try {
    return text === '' ? null : (JSON.parse(text) as JsonValue)
  } catch {
    return text
  }
}

/** Writes media as inline data or as an address. */
export function mediaPart({ base64, url, mimeType }: MediaSource): GooglePart {
  return url === undefined
    ? { inlineData: { mimeType, data: base64 } }
    : { fileData: { mimeType, fileUri: url } }
}

/** Writes a file that was uploaded to Google, by its name (`files/abc`) or address; undefined for any other block. */
function uploadPart(block: ImageBlock | DocumentBlock, provider: string): GooglePart | undefined {
  const id = uploadOf(block, provider)
  if (id === undefined) return undefined
  const fileUri = /^\w+:/.test(id) ? id : `https://generativelanguage.googleapis.com/v1beta/${id}`
  return { fileData: { mimeType: block.mimeType, fileUri } }
}
