import { isPlainObject, sha256Hex, type JsonObject, type JsonValue } from '@skein/base'
import type {
  AssistantContent,
  DocumentBlock,
  TextBlock,
  UserContent,
} from '../../contract/content.ts'
import type { UPPError } from '../../contract/error.ts'
import { contentOf, type AssistantMessage, type Message } from '../../contract/message.ts'
import type { LLMRequest } from '../../contract/provider.ts'
import { resultText } from '../../contract/result-text.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { toAnthropicSchema } from '../anthropic-schema.ts'
import { orderedBlocks } from '../block-order.ts'
import { bodyText } from '../encode-history.ts'
import { encodeOnce } from '../encode-once.ts'
import {
  bytesSource,
  documentSource,
  imageSource,
  type MediaSource,
  refuseForeign,
} from '../media.ts'
import { mergeTools } from '../merge-tools.ts'
import { droppedBlock, foreignReasoning, nativeOf, optionsOf } from '../metadata.ts'
import { listOf, objectOf, without } from '../read-json.ts'
import { replacedFields } from '../replaced-fields.ts'
import { schemaInstruction } from '../schema-dialect.ts'
import { safeToolCallId } from '../tool-call-id.ts'
import { repairTranscript } from '../transcript.ts'
import { unwrapValue } from '../unwrap-value.ts'
import { requestError } from '../wire-error.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'
import { API, type BedrockBlock, type BedrockDialect, toolUseIdRule } from './types.ts'

/**
 * Writes a request of `POST /model/{id}/converse` or `/converse-stream`. Parameters are copied to the body; `system`
 * blocks follow the system prompt, and the tools of `toolConfig` or `tools` follow the function tools.
 */
export function encodeRequest(
  request: LLMRequest,
  { provider, modelId, dialect }: Target<BedrockDialect>,
  mode: RequestMode,
): EncodedRequest {
  const { params, structure } = request
  const warnings: Warning[] = [...replacedFields(params, { messages: true })]
  const messages = repairTranscript(request.messages, warnings)
  const { tools: nativeTools, toolConfig: ownConfig, ...rest } = params
  const output = objectOf(params['outputConfig'])
  // Only the schema of `structure` is adapted to the API; the schemas of tools are not changed.
  const format = structure && output?.['textFormat'] === undefined ? toAnthropicSchema(structure) : undefined // prettier-ignore
  const takesSchema = format?.isNative === true && dialect.takesSchema?.(modelId) !== false
  warnings.push(...(format?.warnings ?? []))
  if (format?.isNative && !takesSchema)
    warnings.push({
      code: 'structure_not_enforced',
      message: `${modelId} takes no schema; it is in the system prompt.`,
      pointer: '/structure',
    })
  const told = format && !takesSchema && schemaInstruction(structure!, 'value')
  const system = told ? [request.system, told].filter(Boolean).join('\n\n') : request.system
  const fields: Record<string, unknown> = { ...rest }
  if (system !== undefined && !isBlank(system))
    fields['system'] = [{ text: system }, ...listOf(params['system'])]
  const toolConfig = toolConfigOf({ request, provider, messages, native: nativeTools, own: ownConfig }, warnings) // prettier-ignore
  if (toolConfig) fields['toolConfig'] = toolConfig
  if (takesSchema)
    fields['outputConfig'] = {
      ...output,
      textFormat: {
        type: 'json_schema',
        structure: { jsonSchema: { name: 'answer', schema: JSON.stringify(format.schema) } },
      },
    }
  refuseBlankEnd(messages, provider)
  const verb = mode === 'stream' ? 'converse-stream' : 'converse'
  return {
    body: bodyText(fields, 'messages', encodeMessages(messages, provider, warnings).join(',')),
    path: `/model/${encodeModelId(modelId)}/${verb}`,
    warnings,
    unwrap: takesSchema && format.isWrapped ? unwrapValue : undefined,
  }
}

/** Encodes what `encodeURIComponent` leaves, too, as AWS does. The id of a model may be an address (ARN). */
function encodeModelId(modelId: string): string {
  return encodeURIComponent(modelId).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

interface ToolParts {
  readonly request: LLMRequest
  readonly provider: string
  readonly messages: readonly Message[]
  readonly native: unknown
  readonly own: unknown
}

function toolConfigOf(
  { request, provider, messages, native, own }: ToolParts,
  warnings: Warning[],
): JsonObject | undefined {
  const config = objectOf(own)
  const tools = mergeTools({
    provider,
    tools: request.tools.map(({ name, description, parameters, metadata }) => ({
      toolSpec: {
        name,
        // The API refuses an empty description.
        description: description === '' ? undefined : description,
        inputSchema: { json: parameters as JsonObject }, // a JSON Schema is JSON
        ...optionsOf(metadata, provider),
      },
    })),
    native: native ?? config?.['tools'],
    namesOf: (tool) => [objectOf(tool['toolSpec'])?.['name']].filter((name) => name !== undefined),
  })
  if (tools) return { ...config, tools: tools as readonly JsonValue[] }
  // The API refuses a history with calls if no tools are declared.
  const names = new Set(
    messages.flatMap((message) =>
      message.type === 'assistant' ? (message.toolCalls ?? []).map(({ toolName }) => toolName) : [],
    ),
  )
  if (names.size === 0) return undefined // a choice among no tools is refused
  warnings.push({
    code: 'history_tools_declared',
    message: `${provider} takes calls only with their tools, so ${[...names].join(', ')} were declared without parameters.`,
  })
  const inputSchema = { json: { type: 'object' } }
  return { tools: [...names].map((name) => ({ toolSpec: { name, inputSchema } })) }
}

/** Writes messages as JSON texts. Users and assistants must take turns, so neighbours of one role are joined. */
function encodeMessages(
  messages: readonly Message[],
  provider: string,
  warnings: Warning[],
): string[] {
  const key = `${API} ${provider}`
  const items: string[] = []
  for (const message of messages) {
    const role = message.type === 'assistant' ? 'assistant' : 'user'
    const encode = (found: Warning[]): readonly JsonObject[] => {
      const content = encodeContent(message, provider, found)
      return content.length > 0 ? [{ role, content }] : []
    }
    const start = `{"role":"${role}","content":[`
    for (const item of encodeOnce(message, key, encode, warnings)) {
      const last = items.at(-1)
      if (last?.startsWith(start))
        items[items.length - 1] = `${last.slice(0, -2)},${item.slice(start.length)}`
      else items.push(item)
    }
  }
  return items
}

function encodeContent(
  message: Message,
  provider: string,
  warnings: Warning[],
): readonly BedrockBlock[] {
  const point = message.metadata?.[provider]?.['cachePoint']
  const mark = point === undefined ? [] : [{ cachePoint: point }]
  switch (message.type) {
    case 'user': {
      const blocks = message.content.flatMap((block) => encodeUserBlock(block, provider))
      const content = blocks.filter(isNotBlank)
      return content.length > 0 ? [...content, ...mark] : []
    }
    case 'assistant': {
      const blocks = encodeAssistant(message, provider, warnings).filter(isNotBlank)
      // The API rejects a message that ends with reasoning, e.g. an answer that was cut off early.
      const end = blocks.findLastIndex((block) => block['reasoningContent'] === undefined) + 1
      return end > 0 ? [...blocks.slice(0, end), ...mark] : []
    }
    case 'tool_result':
      return [...message.results.map((result) => encodeResult(result, provider, warnings)), ...mark]
    default:
      return message satisfies never
  }
}

/** The API refuses a text without a visible character. */
function isNotBlank({ text }: BedrockBlock): boolean {
  return typeof text !== 'string' || !isBlank(text)
}

function isBlank(text: string): boolean {
  return text.trim() === ''
}

/** Throws for a last message of blank text alone. Earlier ones are left out, but this one is what to answer. */
function refuseBlankEnd(messages: readonly Message[], provider: string): void {
  const last = messages.at(-1)
  if (last?.type !== 'user') return
  if (!last.content.every((block) => block.type === 'text' && isBlank(block.text))) return
  throw requestError(
    provider,
    `The last message is blank, and ${provider} accepts no blank text.`,
    'Give it some text, an image or a document.',
  )
}

/** Writes a block, and the cache point that its metadata ask for. Other options are fields of the block. */
function encodeUserBlock(block: UserContent, provider: string): readonly BedrockBlock[] {
  const { cachePoint, ...options } = optionsOf(block.metadata, provider) ?? {}
  const mark = cachePoint === undefined ? [] : [{ cachePoint }]
  if (block.type === 'text') return [{ text: block.text }, ...mark]
  const refusal = refuseBlock(block, provider)
  if (refusal) throw refusal
  switch (block.type) {
    case 'image': {
      const source = imageSource(block)
      return [{ image: { ...mediaOf(source, imageFormats), ...options } }, ...mark]
    }
    case 'document':
      return [{ document: { ...documentOf(block), ...options } }, ...mark]
    case 'audio':
    case 'video': {
      const formats = block.type === 'audio' ? audioFormats : videoFormats
      return [{ [block.type]: { ...mediaOf(bytesSource(block), formats), ...options } }, ...mark]
    }
    case 'binary':
      throw unsendable(block, provider)
    default:
      return block satisfies never
  }
}

type Formats = Readonly<Record<string, string>>

/** The API's names of formats, by the media type without its prefix or parameters. */
const imageFormats: Formats = { png: 'png', jpeg: 'jpeg', jpg: 'jpeg', gif: 'gif', webp: 'webp' }
const audioFormats: Formats = {
  wav: 'wav',
  'x-wav': 'wav',
  wave: 'wav',
  'vnd.wave': 'wav',
  mpeg: 'mp3',
  mp3: 'mp3',
  mp4: 'mp4',
  aac: 'aac',
  'x-m4a': 'm4a',
  flac: 'flac',
  ogg: 'ogg',
  opus: 'opus',
  webm: 'webm',
  l16: 'pcm',
  pcm: 'pcm',
}
const videoFormats: Formats = {
  mp4: 'mp4',
  quicktime: 'mov',
  'x-matroska': 'mkv',
  webm: 'webm',
  'x-flv': 'flv',
  mpeg: 'mpeg',
  'x-ms-wmv': 'wmv',
  '3gpp': 'three_gp',
}
const documentFormats: Formats = {
  pdf: 'pdf',
  csv: 'csv',
  msword: 'doc',
  'vnd.openxmlformats-officedocument.wordprocessingml.document': 'docx',
  'vnd.ms-excel': 'xls',
  'vnd.openxmlformats-officedocument.spreadsheetml.sheet': 'xlsx',
  html: 'html',
  markdown: 'md',
  plain: 'txt',
}

function formatOf(mimeType: string, formats: Formats): string | undefined {
  const name = mimeType.toLowerCase().split(';')[0]!.trim().split('/')[1] ?? ''
  return Object.hasOwn(formats, name) ? formats[name] : undefined
}

/** Writes media as bytes, or by their address in S3. */
function mediaOf({ base64, url, mimeType }: MediaSource, formats: Formats): JsonObject {
  const source = url === undefined ? { bytes: base64 } : { s3Location: { uri: url } }
  return { format: formatOf(mimeType, formats), source }
}

function documentOf(block: DocumentBlock): JsonObject {
  const source = documentSource(block)
  // Text of whatever type is sent as plain text if the API has no name for the type.
  if ('text' in source) {
    const bytes = bytesSource({ data: new TextEncoder().encode(source.text), mimeType: '' }).base64
    const format = formatOf(source.mimeType, documentFormats) ?? 'txt'
    return { format, name: nameOf(block, source.text), source: { bytes } }
  }
  const format = formatOf(source.mimeType, documentFormats) ?? 'txt'
  const name = nameOf(block, source.base64 ?? source.url)
  return { ...mediaOf(source, documentFormats), format, name }
}

/**
 * Returns a name as the API demands: letters, digits, single spaces, hyphens, parentheses and brackets. Documents
 * without a title are named by their content, because two of one name are refused.
 */
function nameOf({ title }: DocumentBlock, content: string): string {
  const name = title
    ?.replace(/[^A-Za-z0-9\-()[\]]+/g, ' ')
    .trim()
    .slice(0, 200)
  return name || `document ${sha256Hex(content).slice(0, 8)}`
}

/** See `Wire.refuse`. */
export function refuse(
  block: UserContent,
  { provider }: Target<BedrockDialect>,
): UPPError | undefined {
  return block.type === 'text' ? undefined : refuseBlock(block, provider)
}

function refuseBlock(
  block: Exclude<UserContent, TextBlock>,
  provider: string,
): UPPError | undefined {
  switch (block.type) {
    case 'image':
    case 'document': {
      if (block.source.type === 'text') return undefined
      if (block.source.type === 'url') {
        const { url } = block.source
        if (/^(s3|data):/i.test(url)) return undefined
        const foreign = refuseForeign(block, provider)
        if (foreign) return foreign
        return requestError(
          provider,
          `The ${block.type} at ${JSON.stringify(url.slice(0, 200))} cannot be sent to ${provider}, which reads no addresses but those of S3.`,
          'Send its data (Document.fromPath, Image.fromPath), or an address that begins with s3://.',
        )
      }
      const isText = block.type === 'document' && block.mimeType.startsWith('text/')
      const formats = block.type === 'image' ? imageFormats : documentFormats
      const isRight = isText || formatOf(block.mimeType, formats) !== undefined
      return isRight ? undefined : unsendable(block, provider)
    }
    case 'audio':
    case 'video': {
      const formats = block.type === 'audio' ? audioFormats : videoFormats
      return formatOf(block.mimeType, formats) ? undefined : unsendable(block, provider)
    }
    case 'binary':
      return unsendable(block, provider)
    default:
      return block satisfies never
  }
}

function unsendable(
  { type, mimeType }: Exclude<UserContent, TextBlock>,
  provider: string,
): UPPError {
  return requestError(
    provider,
    `A ${type} block (${mimeType}) cannot be sent to ${provider}.`,
    'It takes text, images (JPEG, PNG, GIF, WebP), documents (PDF, Word, Excel, CSV, text), sound and film.',
  )
}

function encodeAssistant(
  message: AssistantMessage,
  provider: string,
  warnings: Warning[],
): BedrockBlock[] {
  return orderedBlocks(message, provider).flatMap(({ block, call }) => {
    const encoded = call
      ? encodeCall(call, provider)
      : encodeAssistantBlock(block, provider, warnings)
    return encoded ? [encoded] : []
  })
}

function encodeCall(call: ToolCall, provider: string): BedrockBlock {
  return {
    toolUse: {
      ...nativeOf(call.metadata, provider, API),
      toolUseId: safeToolCallId(call.toolCallId, toolUseIdRule),
      name: call.toolName,
      input: call.arguments,
    },
  }
}

function encodeAssistantBlock(
  block: AssistantContent,
  provider: string,
  warnings: Warning[],
): BedrockBlock | undefined {
  const native = nativeOf(block.metadata, provider, API)
  switch (block.type) {
    case 'text': {
      const citations = native?.['citations']
      if (citations === undefined) return { text: block.text }
      return { citationsContent: { content: [{ text: block.text }], citations } }
    }
    case 'reasoning': {
      // Only reasoning signed by this vendor can be sent back.
      if (native?.['redactedContent'] !== undefined) return { reasoningContent: native }
      if (native?.['signature'] !== undefined)
        return { reasoningContent: { reasoningText: { text: block.text, ...native } } }
      warnings.push(foreignReasoning)
      return undefined
    }
    case 'native':
      if (!native) warnings.push(droppedBlock(block, provider))
      return native
    case 'image': {
      const source = imageSource(block)
      if (source.url === undefined && formatOf(source.mimeType, imageFormats))
        return { image: mediaOf(source, imageFormats) }
      warnings.push(droppedBlock(block, provider))
      return undefined
    }
    case 'audio':
    case 'video':
      warnings.push(droppedBlock(block, provider))
      return undefined
    default:
      return block satisfies never
  }
}

function encodeResult(result: ToolResult, provider: string, warnings: Warning[]): BedrockBlock {
  const { cachePoint: _, ...options } = optionsOf(result.metadata, provider) ?? {}
  return {
    toolResult: {
      toolUseId: safeToolCallId(result.toolCallId, toolUseIdRule),
      content: encodeOutput(result, provider, warnings),
      status: result.isError === true ? 'error' : undefined,
      ...options,
    },
  }
}

function encodeOutput(
  { result }: ToolResult,
  provider: string,
  warnings: Warning[],
): readonly BedrockBlock[] {
  const blocks = contentOf(result)
  if (blocks.length === 0) {
    const text = resultText(result)
    if (isPlainObject(result)) {
      const json = jsonOf(text)
      if (json) return [{ json }]
    }
    return isBlank(text) ? [] : [{ text }]
  }
  return blocks.flatMap((block): readonly BedrockBlock[] => {
    if (block.type === 'text') return isBlank(block.text) ? [] : [{ text: block.text }]
    // Blocks of a tool result that the vendor does not accept are replaced by a text that says so.
    const isSendable = block.type !== 'audio' && !refuseBlock(block, provider)
    if (isSendable) return encodeUserBlock(block, provider).map((item) => without(item, cacheKey))
    const message = `The ${block.type} that a tool returned cannot be sent to ${provider}.`
    warnings.push({ code: 'unsupported_block', message })
    return [{ text: `[${block.mimeType}: not shown]` }]
  })
}

const cacheKey: ReadonlySet<string> = new Set(['cachePoint'])

/** Returns the object of a JSON text. Values that JSON cannot express (bytes, cycles) made it another text. */
function jsonOf(text: string): JsonObject | undefined {
  try {
    return objectOf(JSON.parse(text))
  } catch {
    return undefined
  }
}
