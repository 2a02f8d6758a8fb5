import { encodeBase64, type JsonObject, type JsonSchema, type JsonValue } from '@skein/base'
import {
  type AssistantMessage,
  contentOf,
  type Message,
  type ToolResultMessage,
  type UserMessage,
} from '../../message.ts'
import type { LLMRequest } from '../../provider.ts'
import type { Tool, ToolCall, ToolResult } from '../../tool.ts'
import type { Warning } from '../../warning.ts'
import { bodyText, dialectKey, encodeHistory, encodeOnce } from '../encode-history.ts'
import { argumentsText, mergeTools } from '../tools.ts'
import { listOf, objectOf, textOf } from '../read-json.ts'
import { droppedBlock, foreignReasoning, nativeOf, optionsOf } from '../metadata.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'
import type { ChatMedia, OpenAIChatDialect } from './types.ts'
import { namedSchema, notStrict, openaiSchemas, toDialect } from '../schema-dialect.ts'
import type { DocumentBlock, UserContent } from '../../content.ts'
import { audioFormat, imageUrl, toDataUrl } from '../media.ts'
import { invalidRequest } from '../wire-error.ts'
import { resultText, safeToolCallId } from '../transcript.ts'

type ChatTarget = Target<OpenAIChatDialect>

/** Writes a request of `POST /chat/completions`. */
export function encodeRequest(
  request: LLMRequest,
  target: ChatTarget,
  mode: RequestMode,
): EncodedRequest {
  const structure = chatStructure(request, target.dialect)
  const warnings: Warning[] = [...structure.warnings]
  const fields = {
    model: target.modelId,
    ...structure.fields,
    ...request.params,
    ...streamFields(request, target, mode),
    ...toolFields(request, target),
  }
  const messages = encodeMessages(request, target, structure, warnings)
  return { body: bodyText(fields, 'messages', messages), path: '/chat/completions', warnings }
}

/** `stream` is the one field that params cannot change: the answer could not be read otherwise. */
function streamFields(request: LLMRequest, target: ChatTarget, mode: RequestMode): object {
  if (mode === 'stream') return { stream: true, ...usageOptions(request, target) }
  return 'stream' in request.params ? { stream: false } : {}
}

/** Usage in a stream comes only when asked for; the caller's own options win. */
function usageOptions(request: LLMRequest, { dialect }: ChatTarget): object {
  if (!dialect.streamUsage) return {}
  const options = request.params['stream_options']
  return { stream_options: { include_usage: true, ...(options as object | undefined) } }
}

function toolFields({ tools, params }: LLMRequest, { provider }: ChatTarget): object {
  const merged = mergeTools({
    provider,
    tools: tools.map((tool) => encodeTool(tool, provider)),
    native: params['tools'],
    namesOf: (tool) => [toolName(tool)].filter((name) => name !== undefined),
  })
  return merged ? { tools: merged } : {}
}

function toolName(tool: JsonObject): string | undefined {
  const inner = objectOf(tool['function']) ?? objectOf(tool['custom']) ?? tool
  return textOf(inner['name'])
}

/** Metadata of the tool for this vendor joins its definition, e.g. `{ strict: true }`. */
function encodeTool(tool: Tool, provider: string): JsonObject {
  const { name, description } = tool
  const { type, ...options } = optionsOf(tool.metadata, provider) ?? {}
  if (type === 'custom') return { type: 'custom', custom: { name, description, ...options } }
  // The schema is JSON by its type's contract, which `unknown` values cannot say.
  const parameters = tool.parameters as JsonObject
  return { type: 'function', function: { name, description, parameters, ...options } }
}

function encodeMessages(
  request: LLMRequest,
  target: ChatTarget,
  structure: ChatStructure,
  warnings: Warning[],
): string {
  const key = `openai-chat ${target.provider} ${dialectKey(target.dialect)}`
  const history = encodeHistory(
    request.messages,
    key,
    (messages, found) =>
      messages.flatMap((message) => {
        const encode = (told: Warning[]): readonly JsonObject[] =>
          encodeMessage(message, target, told)
        return encodeOnce(message, key, encode, found)
      }),
    warnings,
  )
  const prompt = [request.system, structure.instruction].filter(Boolean).join('\n\n')
  if (!prompt) return history
  const system = JSON.stringify({ role: target.dialect.systemRole, content: prompt })
  return history ? `${system},${history}` : system
}

function encodeMessage(
  message: Message,
  target: ChatTarget,
  warnings: Warning[],
): readonly JsonObject[] {
  switch (message.type) {
    case 'user':
      return [encodeUser(message, target)]
    case 'assistant':
      return [encodeAssistant(message, target, warnings)]
    case 'tool_result':
      return encodeToolResults(message, target, warnings)
    default:
      return message satisfies never
  }
}

interface ChatStructure {
  readonly fields: JsonObject
  /** Added to the system prompt where the vendor cannot be given a schema. */
  readonly instruction?: string
  readonly isWrapped: boolean
  readonly warnings: readonly Warning[]
}

const none: ChatStructure = { fields: {}, isWrapped: false, warnings: [] }

/** How `structure` is asked for. A `response_format` of the caller's own stands instead. */
export function chatStructure(request: LLMRequest, dialect: OpenAIChatDialect): ChatStructure {
  if (!request.structure || request.params['response_format'] !== undefined) return none
  const { schema, isWrapped, isStrict, warnings } = toDialect(request.structure, openaiSchemas)
  if (dialect.structuredOutput === 'json_object') return jsonObject(schema, isWrapped)
  return {
    fields: {
      response_format: { type: 'json_schema', json_schema: namedSchema(schema, isStrict) },
    },
    isWrapped,
    warnings: isStrict ? warnings : [...warnings, notStrict],
  }
}

function jsonObject(schema: JsonSchema, isWrapped: boolean): ChatStructure {
  return {
    fields: { response_format: { type: 'json_object' } },
    instruction: `Answer with one JSON object that matches this JSON Schema, and nothing else:\n${JSON.stringify(schema)}`,
    isWrapped,
    warnings: [
      {
        code: 'structure_not_enforced',
        message: 'The vendor guarantees JSON but no schema; the schema was told to the model.',
        pointer: '/structure',
      },
    ],
  }
}

/**
 * One text is sent as a string, which every server of this format takes; else as parts. Metadata
 * of the message for this vendor joins it, e.g. `{ name: 'Ada' }`.
 */
function encodeUser(message: UserMessage, target: ChatTarget): JsonObject {
  const options = optionsOf(message.metadata, target.provider)
  const [first] = message.content
  const isPlain =
    message.content.length === 1 &&
    first?.type === 'text' &&
    first.metadata?.[target.provider] === undefined
  const content = isPlain ? first.text : message.content.map((block) => encodePart(block, target))
  return { role: 'user', content, ...options }
}

/**
 * One block as a content part. Metadata of the block for this vendor joins the part, e.g.
 * `{ prompt_cache_breakpoint: … }`; an image's `detail` goes beside its address.
 */
function encodePart(block: UserContent, target: ChatTarget): JsonObject {
  const { detail, ...options } = optionsOf(block.metadata, target.provider) ?? {}
  return { ...partOf(block, detail ? { detail } : {}, target), ...options }
}

function partOf(block: UserContent, detail: JsonObject, target: ChatTarget): JsonObject {
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text }
    case 'image':
      accept('image', target)
      return { type: 'image_url', image_url: { url: imageUrl(block), ...detail } }
    case 'audio':
      accept('audio', target)
      return {
        type: 'input_audio',
        input_audio: { data: encodeBase64(block.data), format: audioFormat(block.mimeType) },
      }
    case 'document':
      return documentPart(block, target)
    case 'video':
      accept('video', target)
      return { type: 'video_url', video_url: { url: toDataUrl(block.mimeType, block.data) } }
    case 'binary':
      accept('document', target)
      return filePart('file', toDataUrl(block.mimeType, block.data))
    default:
      return block satisfies never
  }
}

function documentPart({ source, mimeType, title }: DocumentBlock, target: ChatTarget): JsonObject {
  if (source.type === 'text') {
    return { type: 'text', text: title === undefined ? source.data : `${title}\n\n${source.data}` }
  }
  accept('document', target)
  const name = title ?? (mimeType === 'application/pdf' ? 'document.pdf' : 'document')
  const { documentUrl } = target.dialect
  if (documentUrl === 'document_url') {
    const url = source.type === 'url' ? source.url : toDataUrl(mimeType, source.data)
    return { type: 'document_url', document_url: url, document_name: name }
  }
  if (source.type === 'base64') return filePart(name, toDataUrl(mimeType, source.data))
  if (documentUrl === 'file_data') return filePart(name, source.url)
  throw invalidRequest(
    target.provider,
    `${target.provider} does not take documents by address in Chat Completions.`,
    'Load the document and send it as base64, or use a vendor or API that fetches addresses.',
  )
}

function filePart(filename: string, data: string): JsonObject {
  return { type: 'file', file: { filename, file_data: data } }
}

function accept(kind: ChatMedia, target: ChatTarget): void {
  if (target.dialect.media.includes(kind)) return
  throw invalidRequest(target.provider, `${target.provider} does not take ${kind} input.`)
}

/**
 * An assistant message of the history. What this vendor gave beyond UPP is sent back to it; what
 * another vendor gave is left out.
 */
function encodeAssistant(
  message: AssistantMessage,
  target: ChatTarget,
  warnings: Warning[],
): JsonObject {
  const own = ownMetadata(message, target.provider)
  const { text, refusal, reasoning, extra } = readBlocks(message, target, warnings)
  const calls = message.toolCalls ?? []
  if (reasoning !== '' && !own) warnings.push(foreignReasoning)
  const replayed = own && reasoningFields(reasoning, own, target)
  return {
    role: 'assistant',
    content: withThinking(text || (calls.length > 0 || refusal ? null : ''), replayed?.thinking),
    ...(refusal && { refusal }),
    ...replayed?.fields,
    ...extra,
    ...(own && pick(own, target.dialect.replayFields)),
    ...(calls.length > 0 && { tool_calls: calls.map((call) => encodeCall(call, target)) }),
  }
}

function ownMetadata(message: AssistantMessage, provider: string): JsonObject | undefined {
  const own = message.metadata?.[provider]
  return own?.['api'] === 'openai-chat' ? own : undefined
}

interface AssistantParts {
  text: string
  refusal: string
  reasoning: string
  extra: Record<string, JsonValue>
}

function readBlocks(
  message: AssistantMessage,
  { provider }: ChatTarget,
  warnings: Warning[],
): AssistantParts {
  const parts: AssistantParts = { text: '', refusal: '', reasoning: '', extra: {} }
  for (const block of message.content) {
    const native = nativeOf(block.metadata, provider, 'openai-chat')
    if (block.type === 'text') {
      if (native?.['type'] === 'refusal') parts.refusal += block.text
      else parts.text += block.text
    } else if (block.type === 'reasoning') parts.reasoning += block.text
    else if (block.type === 'audio' && native?.['id']) parts.extra['audio'] = { id: native['id'] }
    else if (block.type === 'image' && native) {
      parts.extra['images'] = [...listOf(parts.extra['images']), native]
    } else warnings.push(droppedBlock(block, provider))
  }
  return parts
}

/** Reasoning goes back in the field it came in, where the vendor asks for that. */
function reasoningFields(
  text: string,
  own: JsonObject,
  { dialect: { reasoning } }: ChatTarget,
): { readonly fields?: JsonObject; readonly thinking?: string } {
  if (reasoning === 'reasoning_details') {
    const details = own['reasoning_details']
    return details === undefined ? {} : { fields: { reasoning_details: details } }
  }
  if (reasoning === 'drop' || text === '') return {}
  return reasoning === 'thinking' ? { thinking: text } : { fields: { [reasoning]: text } }
}

function withThinking(content: string | null, thinking: string | undefined): JsonValue {
  if (thinking === undefined) return content
  const trace = { type: 'thinking', thinking: [{ type: 'text', text: thinking }] }
  return content ? [trace, { type: 'text', text: content }] : [trace]
}

function pick(own: JsonObject, names: readonly string[]): JsonObject {
  const picked: Record<string, JsonValue> = {}
  for (const name of names) if (own[name] !== undefined) picked[name] = own[name]
  return picked
}

function encodeCall(call: ToolCall, { provider, dialect }: ChatTarget): JsonObject {
  const native = nativeOf(call.metadata, provider, 'openai-chat')
  const id = safeToolCallId(call.toolCallId, dialect.toolCallId)
  if (native?.['type'] === 'custom') {
    const input = textOf(call.arguments['input']) ?? ''
    return { ...native, id, type: 'custom', custom: { name: call.toolName, input } }
  }
  const told = objectOf(native?.['function'])
  return {
    ...native,
    id,
    type: 'function',
    function: { ...told, name: call.toolName, arguments: argumentsText(call, told?.['arguments']) },
  }
}

/**
 * One `tool` message per result. They hold text only, so media that a tool returned follow in a
 * user message behind all results; media the vendor cannot take are named and left out.
 */
function encodeToolResults(
  message: ToolResultMessage,
  target: ChatTarget,
  warnings: Warning[],
): readonly JsonObject[] {
  const attached: JsonObject[] = []
  const messages: JsonObject[] = message.results.map((result) => ({
    role: 'tool',
    tool_call_id: safeToolCallId(result.toolCallId, target.dialect.toolCallId),
    content: encodeResult(result, target, attached, warnings),
    ...optionsOf(result.metadata, target.provider),
  }))
  if (attached.length > 0) messages.push({ role: 'user', content: attached })
  return messages
}

function encodeResult(
  { toolCallId, result, isError }: ToolResult,
  target: ChatTarget,
  attached: JsonObject[],
  warnings: Warning[],
): string {
  const blocks = contentOf(result)
  if (blocks.length === 0) return asError(resultText(result), isError)
  const lines = blocks.map((block) => {
    if (block.type === 'text') return block.text
    if (!canAttach(block, target)) {
      warnings.push({
        code: 'unsupported_block',
        message: `${target.provider} does not take the ${block.type} that tool call "${toolCallId}" returned.`,
      })
      return `[${block.type} that cannot be shown]`
    }
    attached.push({ type: 'text', text: `Result of tool call ${toolCallId}:` })
    attached.push(encodePart(block, target))
    return `[${block.type}: see the message below]`
  })
  return asError(lines.join('\n'), isError)
}

function canAttach(block: UserContent, { dialect }: ChatTarget): boolean {
  if (block.type === 'text') return true
  if (block.type === 'binary') return false
  if (block.type !== 'document') return dialect.media.includes(block.type)
  if (block.source.type === 'text') return true
  const isReachable = block.source.type !== 'url' || dialect.documentUrl !== 'reject'
  return isReachable && dialect.media.includes('document')
}

/** The format has no error flag; the word is what models look for. */
function asError(text: string, isError: boolean | undefined): string {
  return isError && !/^error\b/i.test(text) ? `Error: ${text}` : text
}
