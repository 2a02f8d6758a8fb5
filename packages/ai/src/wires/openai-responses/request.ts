import { encodeBase64, type JsonObject, type JsonValue } from '@skein/base'
import type {
  AssistantContent,
  DocumentBlock,
  TextBlock,
  UserContent,
} from '../../contract/content.ts'
import type { UPPError } from '../../contract/error.ts'
import { contentOf, type AssistantMessage, type Message } from '../../contract/message.ts'
import type { LLMRequest } from '../../contract/provider.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { dialectKey, encodeHistory, type ListItems, listRequest } from '../encode-history.ts'
import { encodeOnce } from '../encode-once.ts'
import { audioFormat, imageUrl, refuseForeign, toDataUrl, uploadOf } from '../media.ts'
import { droppedBlock, foreignReasoning, nativeOf, optionsOf } from '../metadata.ts'
import { objectOf, stringOf, textOf, without } from '../read-json.ts'
import { replacedFields } from '../replaced-fields.ts'
import { toDialect } from '../schema-dialect.ts'
import { unwrapValue } from '../unwrap-value.ts'
import { namedSchema, openaiSchemas } from '../strict-schema.ts'
import { mergeTools } from '../merge-tools.ts'
import { argumentsText } from '../arguments-text.ts'
import { resultText } from '../../contract/result-text.ts'
import { orderedBlocks } from '../block-order.ts'
import { safeToolCallId } from '../tool-call-id.ts'
import { requestError } from '../wire-error.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'
import { clientItemOf, writeClientResult } from './client-items.ts'
import type { OpenAIResponsesDialect } from './types.ts'

type ResponsesTarget = Target<OpenAIResponsesDialect>

const api = 'openai-responses'

/** Writes a request of `POST /responses`. */
export function encodeRequest(
  request: LLMRequest,
  target: ResponsesTarget,
  mode: RequestMode,
): EncodedRequest {
  const { provider, modelId } = target
  const { params, system, structure } = request
  const warnings: Warning[] = [
    ...replacedFields(params, {
      model: params['model'] !== modelId,
      input: true,
      instructions: Boolean(system),
    }),
  ]
  const fields: Record<string, unknown> = {
    model: modelId,
    instructions: system || undefined,
    ...params,
  }
  // `structure` is added to the caller's `params.text`, unless that has its own format.
  const text = objectOf(params['text'])
  let unwrap: EncodedRequest['unwrap']
  if (structure && text?.['format'] === undefined) {
    const { schema, isStrict, isWrapped, warnings: changes } = toDialect(structure, openaiSchemas)
    if (isWrapped) unwrap = unwrapValue
    warnings.push(...changes)
    const format = { type: 'json_schema', ...namedSchema(schema, isStrict) }
    fields['text'] = { ...text, format }
  }
  // `params` cannot override `stream`, because the answer could then not be decoded.
  if (mode === 'stream') fields['stream'] = true
  else if ('stream' in params) fields['stream'] = false
  const tools = mergeTools({
    provider,
    tools: request.tools.map(({ name, description, parameters, metadata }) => {
      // The tool's metadata for this vendor is added to its definition, e.g. `{ strict: true }`. The
      // API treats a missing `strict` as true and then changes the schema; with false it keeps the
      // schema.
      const { type, ...options } = optionsOf(metadata, provider) ?? {}
      if (type === 'custom') return { type, name, description, ...options }
      // A tool that the vendor defines has neither name nor schema.
      if (typeof type === 'string' && type !== 'function') return { type, ...options }
      return {
        type: 'function',
        name,
        description,
        parameters: parameters as JsonObject, // a JSON Schema is JSON
        strict: false,
        ...options,
      }
    }),
    native: params['tools'],
    namesOf: (tool) => [textOf(tool['name'])].filter((name) => name !== undefined),
  })
  if (tools) fields['tools'] = tools
  const input = encodeInput(request, target, warnings)
  return listRequest(fields, 'input', input, { path: '/responses', warnings, unwrap })
}

/** Writes all input items. */
function encodeInput(request: LLMRequest, target: ResponsesTarget, warnings: Warning[]): ListItems {
  const { provider, dialect } = target
  const mayBeStored = request.params['store'] !== false
  const key = `openai-responses ${provider} ${dialectKey(dialect)} ${mayBeStored}`
  const history = encodeHistory(
    request.messages,
    key,
    (messages, found) => {
      // Results of custom tools (free text) and of tools that the vendor defines use different item types.
      let special: ReadonlyMap<string, JsonObject> = new Map()
      return messages.flatMap((message) => {
        if (message.type === 'assistant') special = specialCalls(message, provider)
        const context = { target, mayBeStored, special }
        const ownKey = special.size > 0 ? `${key} ${[...special.keys()].join()}` : key
        return encodeOnce(message, ownKey, (own) => encodeMessage(message, context, own), found)
      })
    },
    warnings,
  )
  return { history }
}

/** Everything besides the message itself that decides how the message is written. */
interface MessageContext {
  readonly target: ResponsesTarget
  /** False if the caller asked the vendor not to store responses. */
  readonly mayBeStored: boolean
  /** The vendor's items of those calls in the preceding assistant message that are no function calls, by id. */
  readonly special: ReadonlyMap<string, JsonObject>
}

function specialCalls(
  { toolCalls = [] }: AssistantMessage,
  provider: string,
): ReadonlyMap<string, JsonObject> {
  return new Map(
    toolCalls.flatMap((call): [string, JsonObject][] => {
      const native = nativeOf(call.metadata, provider, api)
      return native && (isCustom(native) || clientItemOf(native)) ? [[call.toolCallId, native]] : []
    }),
  )
}

function encodeMessage(
  message: Message,
  { target, mayBeStored, special }: MessageContext,
  warnings: Warning[],
): readonly JsonObject[] {
  const { provider, dialect } = target
  switch (message.type) {
    case 'user': {
      const content = message.content.map((block) => encodePart(block, target))
      return [{ type: 'message', role: 'user', content, ...optionsOf(message.metadata, provider) }]
    }
    case 'assistant':
      return encodeAssistant(message, target, mayBeStored, warnings)
    case 'tool_result':
      return message.results.flatMap((result): readonly JsonObject[] => {
        const call = special.get(result.toolCallId)
        const kind = clientItemOf(call)
        if (call && kind) return writeClientResult(kind, result, call)
        const output = {
          type: call ? 'custom_tool_call_output' : 'function_call_output',
          call_id: safeToolCallId(result.toolCallId, dialect.toolCallId),
          output: encodeOutput(result, target),
          ...optionsOf(result.metadata, provider),
        }
        return [output]
      })
    default:
      return message satisfies never
  }
}

/**
 * Writes one block as an input part. The block's metadata for this vendor is added,
 * e.g. `{ detail: 'low' }`.
 */
function encodePart(block: UserContent, target: ResponsesTarget): JsonObject {
  const options = optionsOf(block.metadata, target.provider)
  switch (block.type) {
    case 'text':
      return { type: 'input_text', text: block.text, ...options }
    case 'image': {
      accept('image', block.type, target)
      const file_id = uploadOf(block, target.provider)
      if (file_id !== undefined) return { type: 'input_image', file_id, ...options }
      return { type: 'input_image', image_url: imageUrl(block), ...options }
    }
    case 'document':
      return { ...documentPart(block, target), ...options }
    case 'binary': {
      accept('document', block.type, target)
      const file_data = toDataUrl(block.mimeType, block.data)
      return { type: 'input_file', filename: 'file', file_data, ...options }
    }
    case 'audio': {
      accept('audio', block.type, target)
      const input_audio = { data: encodeBase64(block.data), format: audioFormat(block.mimeType) }
      return { type: 'input_audio', input_audio, ...options }
    }
    case 'video':
      accept('video', block.type, target)
      return {
        type: 'input_video',
        video_url: toDataUrl(block.mimeType, block.data),
        ...options,
      }
    default:
      return block satisfies never
  }
}

function documentPart(block: DocumentBlock, target: ResponsesTarget): JsonObject {
  const { source, mimeType, title } = block
  if (source.type === 'text') {
    const text = title === undefined ? source.data : `${title}\n\n${source.data}`
    return { type: 'input_text', text }
  }
  accept('document', 'document', target)
  const file_id = uploadOf(block, target.provider)
  if (file_id !== undefined) return { type: 'input_file', file_id }
  if (source.type === 'url') {
    return { type: 'input_file', file_url: source.url, filename: title || undefined }
  }
  const name = title ?? (mimeType === 'application/pdf' ? 'document.pdf' : 'document')
  return { type: 'input_file', filename: name, file_data: toDataUrl(mimeType, source.data) }
}

function accept(
  kind: OpenAIResponsesDialect['media'][number],
  named: string,
  target: ResponsesTarget,
): void {
  if (!target.dialect.media.includes(kind)) throw refusedTool(named, target)
}

/** See `Wire.refuse`. */
export function refuse(block: UserContent, target: ResponsesTarget): UPPError | undefined {
  const { type } = block
  if (type === 'text' || (type === 'document' && block.source.type === 'text')) return undefined
  const kind = type === 'binary' ? 'document' : type
  if (!target.dialect.media.includes(kind)) return refusedTool(type, target)
  const isAddressed = type === 'image' || type === 'document'
  return isAddressed ? refuseForeign(block, target.provider) : undefined
}

function refusedTool(named: string, { provider }: ResponsesTarget): UPPError {
  return requestError(provider, `${provider} does not take ${named} input through Responses.`)
}

/**
 * Writes an assistant message as items, in the order in which the vendor sent them. Items of this vendor
 * are sent back unchanged; content of another vendor is converted to messages and calls.
 */
function encodeAssistant(
  message: AssistantMessage,
  target: ResponsesTarget,
  mayBeStored: boolean,
  warnings: Warning[],
): readonly JsonObject[] {
  const { provider } = target
  const canReplay = canReplayItems(message, provider, mayBeStored)
  if (!canReplay) {
    warnings.push({
      code: 'reasoning_dropped',
      message:
        'Reasoning of a response that was not stored and not encrypted cannot be sent back and was left out.',
      pointer: '/params/include',
    })
  }
  const items: Record<string, JsonValue | undefined>[] = []
  let previous: AssistantContent | undefined
  for (const { block, call } of orderedBlocks(message, provider)) {
    if (call) items.push(encodeCall(call, target, canReplay))
    else if (block.type === 'text') addText(items, block, { provider, canReplay, previous })
    else if (canReplay) {
      const native = nativeOf(block.metadata, provider, api)
      if (native) items.push({ ...native, ...heldFields(block) })
      else if (block.type === 'reasoning') warnings.push(foreignReasoning)
      else warnings.push(droppedBlock(block, provider))
    }
    previous = block
  }
  // The API rejects reasoning that is not followed by an item, as in answers that were cut off.
  while (items.at(-1)?.['type'] === 'reasoning') items.pop()
  return items
}

/**
 * Checks whether the items can be sent back unchanged. The API recognises a reasoning item by its
 * encrypted content or, if the response was stored, by its id. A reasoning item without either must be
 * left out, and the items after it must lose their ids, because an id requires the reasoning that belongs
 * to it.
 */
function canReplayItems(
  message: AssistantMessage,
  provider: string,
  mayBeStored: boolean,
): boolean {
  if ((message.metadata?.[provider]?.['store'] ?? mayBeStored) !== false) return true
  return message.content.every((block) => {
    const native = block.type === 'reasoning' && nativeOf(block.metadata, provider, api)
    return !native || textOf(native['encrypted_content']) !== undefined
  })
}

/** Returns the item's fields that are stored in the UPP block and therefore missing in the native item. */
function heldFields(block: Exclude<AssistantContent, TextBlock>): JsonObject {
  switch (block.type) {
    case 'image': {
      const { source } = block
      if (source.type === 'url') return { result: null }
      return { result: source.type === 'base64' ? source.data : encodeBase64(source.data) }
    }
    case 'reasoning':
    case 'audio':
    case 'video':
    case 'native':
      return {}
    default:
      return block satisfies never
  }
}

/** Writes a text block. Blocks that were parts of one message item are joined into one item again. */
function addText(
  items: Record<string, JsonValue | undefined>[],
  block: TextBlock,
  { provider, canReplay, previous }: TextPlace,
): void {
  const native = nativeOf(block.metadata, provider, api)
  if (!native && block.text === '') return
  const own = native && itemOf(block, provider)
  const part: JsonObject =
    native?.['type'] === 'refusal'
      ? { ...native, refusal: block.text }
      : { type: 'output_text', annotations: [], ...native, text: block.text }
  const last = items.at(-1)
  // Neighbouring texts of another vendor, which have no item and so no id, are joined too.
  if (last && previous?.type === 'text' && itemOf(previous, provider)?.['id'] === own?.['id']) {
    last['content'] = [...(last['content'] as JsonValue[]), part] // only this function writes `content`
    return
  }
  const item = own ?? { type: 'message', role: 'assistant' }
  items.push({ ...(canReplay ? item : withoutId(item)), content: [part] })
}

interface TextPlace {
  readonly provider: string
  readonly canReplay: boolean
  /** The content block before the text block; undefined at the start and after a call. */
  readonly previous: AssistantContent | undefined
}

/** Returns the message item that a text block was a part of. */
function itemOf(block: TextBlock, provider: string): JsonObject | undefined {
  return objectOf(block.metadata?.[provider]?.['item'])
}

function encodeCall(
  call: ToolCall,
  { provider, dialect }: ResponsesTarget,
  canReplay: boolean,
): Record<string, JsonValue | undefined> {
  const native = nativeOf(call.metadata, provider, api)
  // The answer to a request for approval names the id of the request, so the id is sent even if nothing is stored.
  if (clientItemOf(native))
    return canReplay || native!['type'] === 'mcp_approval_request'
      ? { ...native }
      : withoutId(native!)
  const item = native && (canReplay ? native : withoutId(native))
  const ids = { call_id: safeToolCallId(call.toolCallId, dialect.toolCallId), name: call.toolName }
  if (isCustom(native)) {
    return { ...item, ...ids, input: stringOf(call.arguments['input']) ?? '' }
  }
  return {
    type: 'function_call',
    ...item,
    ...ids,
    arguments: argumentsText(call, native?.['arguments']),
  }
}

const idField = new Set(['id'])

function withoutId(item: JsonObject): JsonObject {
  return without(item, idField)
}

function isCustom(native: JsonObject | undefined): boolean {
  return native?.['type'] === 'custom_tool_call'
}

/** Writes the result of a call. Content blocks that a tool returned are sent as parts, other results as text. */
function encodeOutput({ result, isError }: ToolResult, target: ResponsesTarget): JsonValue {
  const blocks = contentOf(result)
  if (blocks.length === 0) {
    const text = resultText(result)
    // The format has no error flag, so the text begins with "Error", which models recognise.
    return isError && !/^error\b/i.test(text) ? `Error: ${text}` : text
  }
  return blocks.map((block) =>
    // Media that the API does not accept are replaced by a note, so that a result cannot fail the
    // request.
    canReturn(block, target)
      ? encodePart(block, target)
      : { type: 'input_text', text: `[${block.type} that cannot be shown]` },
  )
}

/** Checks whether the API accepts the block in the result of a call. */
function canReturn(block: UserContent, { dialect: { media } }: ResponsesTarget): boolean {
  switch (block.type) {
    case 'text':
      return true
    case 'image':
      return media.includes('image')
    case 'document':
      return block.source.type === 'text' || media.includes('document')
    case 'audio':
    case 'video':
    case 'binary':
      return false
    default:
      return block satisfies never
  }
}
