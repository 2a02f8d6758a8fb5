import type { JsonObject } from '@skein/base'
import { type AssistantMessage, contentOf, type Message } from '../../message.ts'
import type { LLMRequest } from '../../provider.ts'
import type { Tool, ToolCall, ToolResult } from '../../tool.ts'
import type { Warning } from '../../warning.ts'
import { bodyText, encodeHistory, encodeOnce } from '../encode-history.ts'
import { objectOf } from '../read-json.ts'
import { mergeTools } from '../tools.ts'
import { type SchemaDialect, toDialect } from '../schema-dialect.ts'
import { droppedBlock, foreignReasoning, nativeOf, optionsOf } from '../metadata.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'
import { type AnthropicBlock, type AnthropicDialect, API, toolCallIdRule } from './types.ts'
import { decodeLooseBase64 } from '../../loose-base64.ts'
import type { AssistantContent, DocumentBlock, ReasoningBlock, UserContent } from '../../content.ts'
import { documentSource, imageSource } from '../media.ts'
import { orderedBlocks, resultText, safeToolCallId } from '../transcript.ts'
import { invalidRequest } from '../wire-error.ts'

/** The version of the format, not of a model. Beta headers are the caller's to set. */
const headers = { 'anthropic-version': '2023-06-01' }

/**
 * `POST /messages`. Parameters go into the body as they are and win over ours, with three
 * exceptions that add to ours: `system` blocks follow the system prompt, `tools` follow the
 * function tools, `output_config` is completed with the format of `structure`.
 */
export function encodeRequest(
  request: LLMRequest,
  { provider, modelId, dialect }: Target<AnthropicDialect>,
  mode: RequestMode,
): EncodedRequest {
  const { params, system, structure } = request
  const warnings: Warning[] = []
  const tools = mergeTools({
    provider,
    tools: request.tools.map((tool) => encodeTool(tool, provider)),
    native: params['tools'],
    namesOf: (tool) => [tool['name']],
  })
  const fields: Record<string, unknown> = {
    model: modelId,
    max_tokens: dialect.maxTokens,
    ...params,
    ...(system !== undefined && { system: mergeSystem(system, params['system']) }),
    ...(tools && { tools }),
    ...(structure && { output_config: outputConfig(request, warnings) }),
    stream: mode === 'stream' ? true : undefined,
  }
  const items = encodeMessages(request, provider, warnings)
  return { body: bodyText(fields, 'messages', items), path: '/messages', headers, warnings }
}

function encodeMessages({ messages }: LLMRequest, provider: string, warnings: Warning[]): string {
  const key = `${API} ${provider}`
  const encodeAll = (list: readonly Message[], found: Warning[]): string[] =>
    list.flatMap((message) => {
      const encode = (told: Warning[]): readonly JsonObject[] =>
        encodeMessage(message, provider, told)
      return encodeOnce(message, key, encode, found)
    })
  return encodeHistory(messages, key, encodeAll, warnings)
}

/** A prompt in `params.system` (blocks, to be cached) does not displace the `system` option. */
function mergeSystem(system: string, given: unknown): unknown {
  if (given === undefined) return system
  const more: readonly unknown[] = Array.isArray(given) ? given : [{ type: 'text', text: given }]
  return [{ type: 'text', text: system }, ...more]
}

function encodeTool(
  { name, description, parameters, metadata }: Tool,
  provider: string,
): JsonObject {
  return {
    name,
    description,
    input_schema: parameters as JsonObject, // a JSON Schema is JSON
    ...optionsOf(metadata, provider),
  }
}

function outputConfig({ params, structure }: LLMRequest, warnings: Warning[]): unknown {
  const given = objectOf(params['output_config'])
  if (given?.['format'] != null) return given
  const { schema, warnings: changes } = toDialect(structure!, schemaDialect)
  warnings.push(...changes)
  return { ...given, format: { type: 'json_schema', schema } }
}

/** One message in the vendor's form; none when nothing of it can be said there. */
function encodeMessage(
  message: Message,
  provider: string,
  warnings: Warning[],
): readonly JsonObject[] {
  const role = message.type === 'assistant' ? 'assistant' : 'user'
  const content = cached(encodeContent(message, provider, warnings), message, provider)
  return content.length > 0 ? [{ role, content }] : []
}

function encodeContent(
  message: Message,
  provider: string,
  warnings: Warning[],
): readonly AnthropicBlock[] {
  switch (message.type) {
    case 'user':
      return userBlocks(message.content.map((block) => encodeUserBlock(block, provider)))
    case 'assistant':
      return withoutLastThinking(encodeAssistant(message, provider, warnings).filter(isNotEmpty))
    case 'tool_result':
      return message.results.map((result) => encodeResult(result, provider, warnings))
  }
}

/** The API rejects empty text blocks, which models do produce between other blocks. */
function isNotEmpty({ type, text }: AnthropicBlock): boolean {
  return type !== 'text' || text !== ''
}

/** A user who says nothing at all hears it from the API. */
function userBlocks(blocks: readonly AnthropicBlock[]): readonly AnthropicBlock[] {
  const kept = blocks.filter(isNotEmpty)
  return kept.length > 0 || blocks.length !== 1 ? kept : blocks
}

/** The API rejects thinking at the end, which an answer has that was cut off before it said anything. */
function withoutLastThinking(blocks: readonly AnthropicBlock[]): readonly AnthropicBlock[] {
  return blocks.slice(0, blocks.findLastIndex(({ type }) => !type.endsWith('thinking')) + 1)
}

/** `metadata.anthropic.cache_control` of a message marks the last block that can carry it. */
function cached(
  blocks: readonly AnthropicBlock[],
  { metadata }: Message,
  provider: string,
): readonly AnthropicBlock[] {
  const cache_control = metadata?.[provider]?.['cache_control']
  if (cache_control === undefined) return blocks
  const last = blocks.findLastIndex(({ type }) => !type.endsWith('thinking'))
  return blocks.map((block, index) => (index === last ? { cache_control, ...block } : block))
}

function encodeUserBlock(block: UserContent, provider: string): AnthropicBlock {
  const options = optionsOf(block.metadata, provider)
  switch (block.type) {
    case 'text':
      return { type: 'text', text: block.text, ...options }
    case 'image': {
      const { base64, url, mimeType } = imageSource(block)
      const source =
        url === undefined
          ? { type: 'base64', media_type: mimeType, data: base64 }
          : { type: 'url', url }
      return { type: 'image', source, ...options }
    }
    case 'document': {
      const { title } = block
      return {
        type: 'document',
        source: encodeDocument(block),
        ...(title !== undefined && { title }),
        ...options,
      }
    }
    default:
      throw invalidRequest(
        provider,
        `A ${block.type} block (${block.mimeType}) cannot be sent to ${provider}.`,
        'It takes text, images and documents.',
      )
  }
}

/** As base64 the API takes PDF alone; other text goes as text. */
function encodeDocument(block: DocumentBlock): JsonObject {
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
    const encoded = call
      ? encodeCall(call, provider)
      : encodeAssistantBlock(block, provider, warnings)
    if (encoded) blocks.push(encoded)
  }
  return blocks
}

function encodeCall(call: ToolCall, provider: string): AnthropicBlock {
  return {
    type: 'tool_use',
    id: safeToolCallId(call.toolCallId, toolCallIdRule),
    name: call.toolName,
    input: call.arguments,
    ...extras(nativeOf(call.metadata, provider, API)),
    ...optionsOf(call.metadata, provider),
  }
}

/** What the vendor said beyond UPP; the UPP fields stand, so that an edited text is what is sent. */
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
    case 'text':
      return {
        type: 'text',
        text: block.text,
        ...extras(native),
        ...optionsOf(block.metadata, provider),
      }
    case 'reasoning':
      return encodeReasoning(block, native, warnings)
    case 'native':
      if (native) return native as AnthropicBlock // its `type` came with it
      break
    default:
  }
  warnings.push(droppedBlock(block, provider))
  return undefined
}

/** Only what the vendor signed itself can go back: a blank or foreign signature is refused. */
function encodeReasoning(
  { text }: ReasoningBlock,
  native: JsonObject | undefined,
  warnings: Warning[],
): AnthropicBlock | undefined {
  if (native?.['type'] === 'redacted_thinking') return native as AnthropicBlock
  if (native?.['signature']) return { ...native, type: 'thinking', thinking: text }
  warnings.push(foreignReasoning)
  return undefined
}

function encodeResult(result: ToolResult, provider: string, warnings: Warning[]): AnthropicBlock {
  const blocks = contentOf(result.result)
  const content =
    blocks.length > 0
      ? blocks.map((block) => encodeResultBlock(block, provider, warnings))
      : resultText(result.result)
  return {
    type: 'tool_result',
    tool_use_id: safeToolCallId(result.toolCallId, toolCallIdRule),
    ...(content !== '' && { content }),
    ...(result.isError === true && { is_error: true }),
    ...optionsOf(result.metadata, provider),
  }
}

/** A tool may return what the vendor cannot see; then the model is told so, and goes on. */
function encodeResultBlock(
  block: UserContent,
  provider: string,
  warnings: Warning[],
): AnthropicBlock {
  if (block.type === 'text' || block.type === 'image' || block.type === 'document') {
    return encodeUserBlock(block, provider)
  }
  const message = `The ${block.type} that a tool returned cannot be sent to ${provider}.`
  warnings.push({ code: 'unsupported_block', message })
  return { type: 'text', text: `[${block.mimeType}, ${block.data.length} bytes: not shown]` }
}

/**
 * What structured output takes (documentation of November 2026): closed objects, and no limits on
 * numbers, lengths and counts. The schemas of tools are not touched.
 */
export const schemaDialect: SchemaDialect = {
  objectRoot: true,
  closedObjects: true,
  rejected: new Set([
    'minimum',
    'maximum',
    'exclusiveMinimum',
    'exclusiveMaximum',
    'multipleOf',
    'minLength',
    'maxLength',
    'maxItems',
    'uniqueItems',
    'minProperties',
    'maxProperties',
  ]),
}
