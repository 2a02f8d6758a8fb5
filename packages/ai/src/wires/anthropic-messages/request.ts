import type { JsonObject } from '@skein/base'
import type {
  AssistantContent,
  DocumentBlock,
  TextBlock,
  UserContent,
} from '../../contract/content.ts'
import type { UPPError } from '../../contract/error.ts'
import { decodeLooseBase64 } from '../../media/bytes.ts'
import { contentOf, type AssistantMessage, type Message } from '../../contract/message.ts'
import type { LLMRequest, Params } from '../../contract/provider.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { toAnthropicSchema } from '../anthropic-schema.ts'
import { encodeHistory, listRequest } from '../encode-history.ts'
import { encodeOnce } from '../encode-once.ts'
import { documentSource, imageSource, refuseForeign, uploadOf } from '../media.ts'
import { droppedBlock, foreignReasoning, nativeOf, optionsOf } from '../metadata.ts'
import { objectOf, textOf } from '../read-json.ts'
import { replacedFields } from '../replaced-fields.ts'
import { schemaInstruction } from '../schema-dialect.ts'
import { unwrapValue } from '../unwrap-value.ts'
import { mergeTools } from '../merge-tools.ts'
import { resultText } from '../../contract/result-text.ts'
import { orderedBlocks } from '../block-order.ts'
import { safeToolCallId } from '../tool-call-id.ts'
import { requestError } from '../wire-error.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'

import { API, toolCallIdRule, type AnthropicBlock, type AnthropicDialect } from './types.ts'

/**
 * The version of the format, not of a model. The later version `2026-10-21` refuses `temperature`, `top_p`
 * and `top_k`, so it is sent only if the caller sets the header (docs/decisions/0034). Callers set beta
 * headers themselves.
 */
export const versionHeader: Readonly<Record<string, string>> = { 'anthropic-version': '2023-06-01' }

/**
 * Writes a request of `POST /messages`. Parameters are copied to the body and override our fields, with
 * three exceptions that are added to our fields instead: `system` blocks follow the system prompt,
 * `tools` follow the function tools, `output_config` is completed with the format of `structure`.
 */
export function encodeRequest(
  request: LLMRequest,
  { provider, modelId, dialect }: Target<AnthropicDialect>,
  mode: RequestMode,
): EncodedRequest {
  const { params, structure } = request
  const warnings: Warning[] = [
    ...replacedFields(params, {
      model: params['model'] !== modelId,
      messages: true,
    }),
  ]
  const outputConfig = objectOf(params['output_config'])
  // Only the schema of `structure` is adapted to the API; the schemas of tools are not changed.
  const format =
    structure && outputConfig?.['format'] == null ? toAnthropicSchema(structure) : undefined
  warnings.push(...(format?.warnings ?? []))
  const instruction = format && !format.isNative && schemaInstruction(format.schema, 'value')
  const system = instruction
    ? [request.system, instruction].filter(Boolean).join('\n\n')
    : request.system
  const tools = mergeTools({
    provider,
    tools: request.tools.map(({ name, description, parameters, metadata }) => {
      const options = optionsOf(metadata, provider)
      const type = options?.['type']
      // A tool that the vendor defines has a type of its own instead of description and schema; a toolset has
      // no name either.
      if (typeof type === 'string' && type !== 'custom')
        return /_toolset_/.test(type) ? { ...options } : { name, ...options }
      return {
        name,
        description,
        input_schema: parameters as JsonObject, // a JSON Schema is JSON
        ...options,
      }
    }),
    native: params['tools'],
    namesOf: (tool) => [tool['name']],
  })
  const fields: Record<string, unknown> = {
    model: modelId,
    max_tokens: defaultMaxTokens(
      params,
      dialect.accepts?.(modelId)?.maxOutputTokens ?? dialect.maxTokens,
    ),
    ...params,
    tools,
    stream: mode === 'stream' ? true : undefined,
  }
  if (system !== undefined && !isBlank(system)) {
    // A prompt in `params.system` (e.g. blocks with cache marks) is added to the `system` option and
    // does not replace it.
    const given = params['system']
    const more: readonly unknown[] = Array.isArray(given) ? given : [{ type: 'text', text: given }]
    fields['system'] = given === undefined ? system : [{ type: 'text', text: system }, ...more]
  }
  if (format?.isNative)
    fields['output_config'] = {
      ...outputConfig,
      format: { type: 'json_schema', schema: format.schema },
    }
  refuseBlankEnd(request.messages, provider)
  const key = `${API} ${provider}`
  const history = encodeHistory(
    request.messages,
    key,
    (messages, found) =>
      messages.flatMap((message) =>
        encodeOnce(message, key, (own) => encodeMessage(message, provider, own), found),
      ),
    warnings,
  )
  return listRequest(
    fields,
    'messages',
    { history },
    {
      path: '/messages',
      headers: versionHeader,
      warnings,
      unwrap: format?.isWrapped ? unwrapValue : undefined,
    },
  )
}

/** The tokens left for the answer if a thinking budget is above the default of `max_tokens`. */
const ANSWER_TOKENS = 4096

/**
 * The tokens for thinking and answer where the model decides how much it thinks and its limit is not known. Every
 * model of Anthropic that thinks so writes at least four times as many.
 */
const ADAPTIVE_TOKENS = 32_000

/** Returns the default of `max_tokens`. It must exceed the thinking budget, or the API rejects the request. */
function defaultMaxTokens(params: Params, limit: number): number {
  const { type, budget_tokens: budget } = objectOf(params['thinking']) ?? {}
  if (type === 'adaptive') return Math.max(limit, ADAPTIVE_TOKENS)
  return typeof budget === 'number' ? Math.max(limit, budget + ANSWER_TOKENS) : limit
}

/** Writes one message; returns an empty list if the format can express no part of it. */
function encodeMessage(
  message: Message,
  provider: string,
  warnings: Warning[],
): readonly JsonObject[] {
  const blocks = encodeContent(message, provider, warnings)
  if (blocks.length === 0) return []
  const role = message.type === 'assistant' ? 'assistant' : 'user'
  // `metadata.anthropic.cache_control` of a message is set on its last block that is not thinking.
  const cache_control = message.metadata?.[provider]?.['cache_control']
  if (cache_control === undefined) return [{ role, content: blocks }]
  const last = lastSpoken(blocks)
  const content = blocks.map((block, index) =>
    index === last ? { cache_control, ...block } : block,
  )
  return [{ role, content }]
}

/** Returns the index of the last block that is not thinking, or -1. */
function lastSpoken(blocks: readonly AnthropicBlock[]): number {
  return blocks.findLastIndex(({ type }) => !type.endsWith('thinking'))
}

function encodeContent(
  message: Message,
  provider: string,
  warnings: Warning[],
): readonly AnthropicBlock[] {
  switch (message.type) {
    case 'user': {
      const blocks = message.content.map((block) => encodeUserBlock(block, provider))
      return blocks.filter(isNotBlank)
    }
    case 'assistant': {
      const blocks = encodeAssistant(message, provider, warnings).filter(isNotBlank)
      // The API rejects a message that ends with thinking blocks, e.g. an answer that was cut off early.
      return blocks.slice(0, lastSpoken(blocks) + 1)
    }
    case 'tool_result':
      return message.results.map((result) => encodeResult(result, provider, warnings))
    default:
      return message satisfies never
  }
}

/**
 * False for text blocks without a visible character: models of several vendors write them between other blocks,
 * but the API refuses them ("text content blocks must contain non-whitespace text").
 */
function isNotBlank({ type, text }: AnthropicBlock): boolean {
  return type !== 'text' || typeof text !== 'string' || !isBlank(text)
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

function encodeUserBlock(block: UserContent, provider: string): AnthropicBlock {
  const options = optionsOf(block.metadata, provider)
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text, ...options }
    case 'image': {
      const file_id = uploadOf(block, provider)
      if (file_id !== undefined)
        return { type: 'image', source: { type: 'file', file_id }, ...options }
      const { base64, url, mimeType } = imageSource(block)
      const source =
        url === undefined
          ? { type: 'base64', media_type: mimeType, data: base64 }
          : { type: 'url', url }
      return { type: 'image', source, ...options }
    }
    case 'document':
      return {
        type: 'document',
        source: encodeDocument(block, provider),
        title: block.title,
        ...options,
      }
    case 'audio':
    case 'video':
    case 'binary':
      throw refusal(block, provider)
    default:
      return block satisfies never
  }
}

/** See `Wire.refuse`. */
export function refuse(
  block: UserContent,
  { provider }: Target<AnthropicDialect>,
): UPPError | undefined {
  switch (block.type) {
    case 'text':
      return undefined
    case 'image':
      if (block.source.type === 'url') return refuseForeign(block, provider)
      return imageTypes.test(block.mimeType) ? undefined : refusal(block, provider)
    case 'document':
      if (block.source.type !== 'base64') return refuseForeign(block, provider)
      return documentTypes.test(block.mimeType) ? undefined : refusal(block, provider)
    case 'audio':
    case 'video':
    case 'binary':
      return refusal(block, provider)
    default:
      return block satisfies never
  }
}

/** The media types of inline data. A type that is not known is left to the vendor to judge. */
const imageTypes = /^image\/(?:jpe?g|png|gif|webp)\b|^(?!image\/.)/i
/** Text is decoded, and sent as text. */
const documentTypes = /^(?:application\/pdf|text\/.*)$|^$/i

function refusal({ type, mimeType }: Exclude<UserContent, TextBlock>, provider: string): UPPError {
  return requestError(
    provider,
    `A ${type} block (${mimeType}) cannot be sent to ${provider}.`,
    'It takes text, images (JPEG, PNG, GIF, WebP) and documents (PDF, text).',
  )
}

/**
 * Writes the source of a document. As base64 the API accepts only PDF, so documents of a text type are
 * decoded and sent as text.
 */
function encodeDocument(block: DocumentBlock, provider: string): JsonObject {
  const file_id = uploadOf(block, provider)
  if (file_id !== undefined) return { type: 'file', file_id }
  const source = documentSource(block)
  if ('text' in source) return { type: 'text', media_type: 'text/plain', data: source.text }
  const { base64, url, mimeType } = source
  if (url !== undefined) return { type: 'url', url }
  if (!mimeType.startsWith('text/')) return { type: 'base64', media_type: mimeType, data: base64 }
  const data = new TextDecoder().decode(decodeLooseBase64(base64))
  return { type: 'text', media_type: 'text/plain', data }
}

function encodeAssistant(
  message: AssistantMessage,
  provider: string,
  warnings: Warning[],
): AnthropicBlock[] {
  const blocks: AnthropicBlock[] = []
  for (const { block, call } of orderedBlocks(message, provider)) {
    const nativeBlock = call
      ? encodeCall(call, provider)
      : encodeAssistantBlock(block, provider, warnings)
    if (nativeBlock) blocks.push(nativeBlock)
  }
  return blocks
}

function encodeCall(call: ToolCall, provider: string): AnthropicBlock {
  const native = nativeOf(call.metadata, provider, API)
  const member = native?.['toolset_name'] === undefined ? undefined : textOf(native['name'])
  const { action: _action, ...input } = call.arguments
  return {
    type: 'tool_use',
    id: safeToolCallId(call.toolCallId, toolCallIdRule),
    // A call of a toolset names one of its members, which the arguments have as `action`.
    name: member ?? call.toolName,
    input: member === undefined ? call.arguments : input,
    ...extras(native),
    ...optionsOf(call.metadata, provider),
  }
}

/**
 * Returns the vendor's fields without a UPP counterpart. Fields that UPP has are omitted, so that a caller's
 * edits of them are sent.
 */
function extras(native: JsonObject | undefined): JsonObject {
  const { type: _type, id: _id, name: _name, ...rest } = native ?? {}
  return rest
}

function encodeAssistantBlock(
  block: AssistantContent,
  provider: string,
  warnings: Warning[],
): AnthropicBlock | undefined {
  const native = nativeOf(block.metadata, provider, API)
  switch (block.type) {
    case 'text': {
      const options = optionsOf(block.metadata, provider)
      return { type: 'text', text: block.text, ...extras(native), ...options }
    }
    case 'reasoning':
      // Only reasoning signed by this vendor can be sent back; a missing or foreign signature is
      // rejected.
      if (native?.['type'] === 'redacted_thinking') return native as AnthropicBlock
      if (native?.['signature']) return { ...native, type: 'thinking', thinking: block.text }
      warnings.push(foreignReasoning)
      return undefined
    case 'native':
      if (!native) warnings.push(droppedBlock(block, provider))
      return native as AnthropicBlock | undefined // a native block always has a `type`
    case 'image':
    case 'audio':
    case 'video':
      warnings.push(droppedBlock(block, provider))
      return undefined
    default:
      return block satisfies never
  }
}

function encodeResult(result: ToolResult, provider: string, warnings: Warning[]): AnthropicBlock {
  const blocks = contentOf(result.result)
  const content =
    blocks.length > 0
      ? blocks.flatMap((block) => {
          if (block.type === 'text' && isBlank(block.text)) return []
          // Blocks of a tool result that the vendor does not accept are replaced by a text that says so.
          switch (block.type) {
            case 'text':
            case 'image':
            case 'document':
              return encodeUserBlock(block, provider)
            case 'audio':
            case 'video':
            case 'binary': {
              const message = `The ${block.type} that a tool returned cannot be sent to ${provider}.`
              warnings.push({ code: 'unsupported_block', message })
              return {
                type: 'text',
                text: `[${block.mimeType}, ${block.data.length} bytes: not shown]`,
              }
            }
            default:
              return block satisfies never
          }
        })
      : resultText(result.result)
  return {
    type: 'tool_result',
    tool_use_id: safeToolCallId(result.toolCallId, toolCallIdRule),
    content:
      content.length === 0 || (typeof content === 'string' && isBlank(content))
        ? undefined
        : content,
    is_error: result.isError === true ? true : undefined,
    ...optionsOf(result.metadata, provider),
  }
}
