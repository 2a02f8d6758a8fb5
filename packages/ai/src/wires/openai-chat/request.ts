import { encodeBase64, type JsonObject, type JsonValue } from '@skein/base'
import type { DocumentBlock, UserContent } from '../../contract/content.ts'
import type { UPPError } from '../../contract/error.ts'
import {
  contentOf,
  type AssistantMessage,
  type Message,
  type ToolResultMessage,
} from '../../contract/message.ts'
import type { LLMRequest } from '../../contract/provider.ts'
import type { ToolCall } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { dialectKey, encodeHistory, type ListItems, listRequest } from '../encode-history.ts'
import { encodeOnce } from '../encode-once.ts'
import {
  audioFormat,
  imageUrl,
  refuseForeign,
  toDataUrl,
  uploadedError,
  uploadOf,
} from '../media.ts'
import { droppedBlock, foreignReasoning, nativeOf, optionsOf } from '../metadata.ts'
import { listOf, objectOf, textOf } from '../read-json.ts'
import { replacedFields } from '../replaced-fields.ts'
import { schemaInstruction, toDialect } from '../schema-dialect.ts'
import { unwrapValue } from '../unwrap-value.ts'
import { namedSchema, openaiSchemas } from '../strict-schema.ts'
import { mergeTools } from '../merge-tools.ts'
import { argumentsText } from '../arguments-text.ts'
import { resultText } from '../../contract/result-text.ts'
import { safeToolCallId } from '../tool-call-id.ts'
import { requestError } from '../wire-error.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'
import type { ChatMedia, OpenAIChatDialect } from './dialect.ts'

type ChatTarget = Target<OpenAIChatDialect>

/** Writes a request of `POST /chat/completions`. */
export function encodeRequest(
  request: LLMRequest,
  target: ChatTarget,
  mode: RequestMode,
): EncodedRequest {
  const { provider, modelId, dialect } = target
  const { params } = request
  const structure = chatStructure(request, dialect)
  const warnings: Warning[] = [
    ...replacedFields(params, {
      model: params['model'] !== modelId,
      messages: true,
    }),
    ...structure.warnings,
  ]
  const fields: Record<string, unknown> = { model: modelId, ...structure.fields, ...params }
  // `params` cannot override `stream`, because the answer could then not be decoded.
  if (mode === 'stream') fields['stream'] = true
  else if ('stream' in params) fields['stream'] = false
  const options = params['stream_options']
  // Vendors report the usage of a stream only when asked; the caller's `stream_options` override ours, and
  // null turns them off.
  if (mode === 'stream' && dialect.streamUsage && options !== null)
    fields['stream_options'] = { include_usage: true, ...(options as object | undefined) }
  const tools = mergeTools({
    provider,
    tools: request.tools.map(({ name, description, parameters, metadata }) => {
      // The tool's metadata for this vendor is added to its definition, e.g. `{ strict: true }`.
      const { type, ...options } = optionsOf(metadata, provider) ?? {}
      // A tool that the vendor defines for Responses is an ordinary function in this format.
      const isDefined = typeof type === 'string' && type !== 'custom' && type !== 'function'
      return type === 'custom'
        ? { type, custom: { name, description, ...options } }
        : {
            type: 'function',
            function: {
              name,
              description,
              parameters: parameters as JsonObject, // a JSON Schema is JSON
              ...(isDefined ? {} : options),
            },
          }
    }),
    native: params['tools'],
    namesOf: (tool) => {
      const inner = objectOf(tool['function']) ?? objectOf(tool['custom']) ?? tool
      return [textOf(inner['name'])].filter((name) => name !== undefined)
    },
  })
  if (tools) fields['tools'] = tools
  const messages = encodeMessages(request, target, structure, warnings)
  return listRequest(fields, 'messages', messages, {
    path: '/chat/completions',
    warnings,
    unwrap: structure.isWrapped ? unwrapValue : undefined,
  })
}

/** How a request asks for a structured answer: with fields of the body, or with text in the system prompt. */
interface ChatStructure {
  readonly fields: JsonObject
  /** Text added to the system prompt if the vendor accepts no schema. */
  readonly instruction?: string
  readonly isWrapped: boolean
  readonly warnings: readonly Warning[]
}

/** Decides how to request `structure`. If the caller set `response_format`, that is sent instead. */
function chatStructure(request: LLMRequest, dialect: OpenAIChatDialect): ChatStructure {
  if (!request.structure || request.params['response_format'] !== undefined) {
    return { fields: {}, isWrapped: false, warnings: [] }
  }
  if (dialect.structuredOutput === 'json_object') {
    const { schema, isWrapped } = toDialect(request.structure, { objectRoot: true })
    return {
      fields: { response_format: { type: 'json_object' } },
      instruction: schemaInstruction(schema, 'object'),
      isWrapped,
      warnings: [
        {
          code: 'structure_not_enforced',
          message: 'The vendor guarantees JSON but no schema; the schema is in the prompt.',
          pointer: '/structure',
        },
      ],
    }
  }
  const { schema, isWrapped, isStrict, warnings } = toDialect(request.structure, openaiSchemas)
  return {
    fields: {
      response_format: { type: 'json_schema', json_schema: namedSchema(schema, isStrict) },
    },
    isWrapped,
    warnings,
  }
}

/** Writes all messages, with the system prompt first. */
function encodeMessages(
  request: LLMRequest,
  target: ChatTarget,
  structure: ChatStructure,
  warnings: Warning[],
): ListItems {
  const key = `openai-chat ${target.provider} ${dialectKey(target.dialect)}`
  const history = encodeHistory(
    request.messages,
    key,
    (messages, found) =>
      messages.flatMap((message) =>
        encodeOnce(message, key, (own) => encodeMessage(message, target, own), found),
      ),
    warnings,
  )
  const prompt = [request.system, structure.instruction].filter(Boolean).join('\n\n')
  if (!prompt) return { history }
  return { first: JSON.stringify({ role: target.dialect.systemRole, content: prompt }), history }
}

function encodeMessage(
  message: Message,
  target: ChatTarget,
  warnings: Warning[],
): readonly JsonObject[] {
  switch (message.type) {
    case 'user': {
      // A single text is sent as a string, which every server of this format accepts; other content as
      // parts.
      const [first] = message.content
      const isPlain =
        message.content.length === 1 &&
        first?.type === 'text' &&
        first.metadata?.[target.provider] === undefined
      const content = isPlain
        ? first.text
        : message.content.map((block) => encodePart(block, target))
      // The message's metadata for this vendor is added, e.g. `{ name: 'Ada' }`.
      return [{ role: 'user', content, ...optionsOf(message.metadata, target.provider) }]
    }
    case 'assistant':
      return [encodeAssistant(message, target, warnings)]
    case 'tool_result':
      return encodeToolResults(message, target, warnings)
    default:
      return message satisfies never
  }
}

/**
 * Writes one block as a content part. The block's metadata for this vendor is added to the part, e.g.
 * `{ prompt_cache_breakpoint: … }`; `detail` of an image is put next to its URL.
 */
function encodePart(block: UserContent, target: ChatTarget): JsonObject {
  const options = optionsOf(block.metadata, target.provider) ?? {}
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text, ...options }
    case 'image': {
      accept('image', target)
      uploadOf(block, target.provider) // throws for a file of another vendor
      const { detail, ...others } = options
      const image_url = { url: imageUrl(block), detail: detail || undefined }
      return { type: 'image_url', image_url, ...others }
    }
    case 'audio': {
      accept('audio', target)
      const data = encodeBase64(block.data)
      const input_audio =
        target.dialect.audio === 'base64' ? data : { data, format: audioFormat(block.mimeType) }
      return { type: 'input_audio', input_audio, ...options }
    }
    case 'document':
      return { ...documentPart(block, target), ...options }
    case 'video': {
      accept('video', target)
      const video_url = { url: toDataUrl(block.mimeType, block.data) }
      return { type: 'video_url', video_url, ...options }
    }
    case 'binary':
      accept('document', target)
      return { ...filePart('file', toDataUrl(block.mimeType, block.data)), ...options }
    default:
      return block satisfies never
  }
}

function documentPart(block: DocumentBlock, target: ChatTarget): JsonObject {
  const { source, mimeType, title } = block
  if (source.type === 'text') {
    return { type: 'text', text: title === undefined ? source.data : `${title}\n\n${source.data}` }
  }
  accept('document', target)
  const name = title ?? (mimeType === 'application/pdf' ? 'document.pdf' : 'document')
  const { documentUrl } = target.dialect
  const file_id = uploadOf(block, target.provider)
  if (file_id !== undefined)
    return documentUrl === 'document_url'
      ? { type: 'file', file_id }
      : { type: 'file', file: { file_id } }
  if (documentUrl === 'document_url') {
    const url = source.type === 'url' ? source.url : toDataUrl(mimeType, source.data)
    return { type: 'document_url', document_url: url, document_name: name }
  }
  if (source.type === 'base64') return filePart(name, toDataUrl(mimeType, source.data))
  if (documentUrl === 'file_data') return filePart(name, source.url)
  throw addressError(target)
}

function addressError({ provider }: ChatTarget): UPPError {
  return requestError(
    provider,
    `${provider} does not take documents by address in Chat Completions.`,
    'Send the document as base64.',
  )
}

/** See `Wire.refuse`. */
export function refuse(block: UserContent, target: ChatTarget): UPPError | undefined {
  const { provider, dialect } = target
  switch (block.type) {
    case 'text':
      return undefined
    case 'image':
      if (block.source.type !== 'url') return refuseKind('image', target)
      // This format has no ids of pictures.
      return refuseKind('image', target) ?? refuseForeign(block, provider) ?? uploadedError(block.source.url) // prettier-ignore
    case 'document': {
      if (block.source.type === 'text') return undefined
      const error = refuseKind('document', target) ?? refuseForeign(block, provider)
      if (error || block.source.type !== 'url' || dialect.documentUrl !== 'reject') return error
      return uploadOf(block, provider) === undefined ? addressError(target) : undefined
    }
    case 'audio': {
      const format = audioFormat(block.mimeType)
      const isKnown = dialect.audioFormats?.includes(format) ?? true
      return refuseKind('audio', target) ?? (isKnown ? undefined : audioError(format, target))
    }
    case 'video':
      return refuseKind('video', target)
    case 'binary':
      return refuseKind('document', target)
    default:
      return block satisfies never
  }
}

function audioError(format: string, { provider, dialect }: ChatTarget): UPPError {
  const formats = dialect.audioFormats?.join(', ')
  return requestError(provider, `${provider} does not take audio as ${format}, only as ${formats}.`)
}

function filePart(filename: string, data: string): JsonObject {
  return { type: 'file', file: { filename, file_data: data } }
}

function accept(kind: ChatMedia, target: ChatTarget): void {
  const error = refuseKind(kind, target)
  if (error) throw error
}

function refuseKind(kind: ChatMedia, { provider, dialect }: ChatTarget): UPPError | undefined {
  if (dialect.media.includes(kind)) return undefined
  return requestError(provider, `${provider} does not take ${kind} input.`)
}

/**
 * Writes an assistant message of the history. Fields beyond UPP are sent back to the vendor they came
 * from and to no other.
 */
function encodeAssistant(
  message: AssistantMessage,
  target: ChatTarget,
  warnings: Warning[],
): JsonObject {
  const { provider, dialect } = target
  let text = ''
  let refusal = ''
  let reasoning = ''
  const extra: Record<string, JsonValue> = {}
  for (const block of message.content) {
    const native = nativeOf(block.metadata, provider, 'openai-chat')
    switch (block.type) {
      case 'text':
        if (native?.['type'] === 'refusal') refusal += block.text
        else text += block.text
        break
      case 'reasoning':
        reasoning += block.text
        break
      case 'audio':
        if (native?.['id']) extra['audio'] = { id: native['id'] }
        else warnings.push(droppedBlock(block, provider))
        break
      case 'image':
        if (native) extra['images'] = [...listOf(extra['images']), native]
        else warnings.push(droppedBlock(block, provider))
        break
      case 'video':
      case 'native':
        warnings.push(droppedBlock(block, provider))
        break
      default:
        block satisfies never
    }
  }
  const calls = (message.toolCalls ?? []).map((call) => encodeCall(call, target))
  let content: JsonValue = text || (calls.length > 0 || refusal ? null : '')
  const metadata = message.metadata?.[provider]
  const own = metadata?.['api'] === 'openai-chat' ? metadata : undefined
  if (!own && reasoning !== '') warnings.push(foreignReasoning)
  if (own) {
    // If the vendor requires its reasoning back, it is sent in the field in which it came.
    const field = dialect.reasoning
    if (field === 'reasoning_details') extra[field] ??= own[field]!
    else if (field === 'thinking' && reasoning !== '') {
      // All thinking of a message is sent as one chunk, so only a single signature still fits it.
      const [signature, ...others] = listOf(own['thinking_signatures'])
      const trace = {
        type: 'thinking',
        thinking: [{ type: 'text', text: reasoning }],
        signature: others.length === 0 ? signature : undefined,
      } as JsonObject // fields that are undefined are not written
      content = content ? [trace, { type: 'text', text: content }] : [trace]
    } else if (field !== 'drop' && reasoning !== '') extra[field] = reasoning
    for (const name of dialect.replayFields) if (own[name] !== undefined) extra[name] = own[name]
  }
  return {
    role: 'assistant',
    content,
    refusal: refusal || undefined,
    ...extra,
    tool_calls: calls.length > 0 ? calls : undefined,
  }
}

function encodeCall(call: ToolCall, { provider, dialect }: ChatTarget): JsonObject {
  const native = nativeOf(call.metadata, provider, 'openai-chat')
  const id = safeToolCallId(call.toolCallId, dialect.toolCallId)
  if (native?.['type'] === 'custom') {
    const input = textOf(call.arguments['input']) ?? ''
    return { ...native, id, type: 'custom', custom: { name: call.toolName, input } }
  }
  const nativeFunction = objectOf(native?.['function'])
  return {
    ...native,
    id,
    type: 'function',
    function: {
      ...nativeFunction,
      name: call.toolName,
      arguments: argumentsText(call, nativeFunction?.['arguments']),
    },
  }
}

/**
 * Writes one `tool` message per result. A `tool` message contains only text, so media that a tool
 * returned follow in a user message after all results; media that the vendor does not accept are replaced
 * by a note.
 */
function encodeToolResults(
  message: ToolResultMessage,
  target: ChatTarget,
  warnings: Warning[],
): readonly JsonObject[] {
  const imageParts: JsonObject[] = []
  const messages: JsonObject[] = message.results.map((result) => {
    const { toolCallId, isError } = result
    const blocks = contentOf(result.result)
    const lines = blocks.map((block) => {
      if (block.type === 'text') return block.text
      if (!canAttach(block, target)) {
        warnings.push({
          code: 'unsupported_block',
          message: `${target.provider} does not take the ${block.type} that tool call "${toolCallId}" returned.`,
        })
        return `[${block.type} that cannot be shown]`
      }
      imageParts.push({ type: 'text', text: `Result of tool call ${toolCallId}:` })
      imageParts.push(encodePart(block, target))
      return `[${block.type}: see the message below]`
    })
    const text = blocks.length > 0 ? lines.join('\n') : resultText(result.result)
    return {
      role: 'tool',
      tool_call_id: safeToolCallId(toolCallId, target.dialect.toolCallId),
      // The format has no error flag, so the text begins with "Error", which models recognise.
      content: isError && !/^error\b/i.test(text) ? `Error: ${text}` : text,
      ...optionsOf(result.metadata, target.provider),
    }
  })
  if (imageParts.length > 0) messages.push({ role: 'user', content: imageParts })
  return messages
}

/** Checks whether `encodePart` can write the block for this vendor. */
function canAttach(block: UserContent, { dialect }: ChatTarget): boolean {
  switch (block.type) {
    case 'text':
      return true
    case 'image':
    case 'audio':
    case 'video':
      return dialect.media.includes(block.type)
    case 'document': {
      if (block.source.type === 'text') return true
      const isReachable = block.source.type !== 'url' || dialect.documentUrl !== 'reject'
      return isReachable && dialect.media.includes('document')
    }
    case 'binary':
      return false
    default:
      return block satisfies never
  }
}
