import { encodeBase64, type JsonObject, type JsonValue } from '@skein/base'
import type { LLMRequest } from '../../provider.ts'
import type { Tool, ToolCall, ToolResult } from '../../tool.ts'
import type { Warning } from '../../warning.ts'
import { bodyText, dialectKey, encodeHistory, encodeOnce } from '../encode-history.ts'
import { argumentsText, mergeTools } from '../tools.ts'
import { namedSchema, notStrict, openaiSchemas, toDialect } from '../schema-dialect.ts'
import { objectOf, stringOf, textOf, without } from '../read-json.ts'
import { droppedBlock, foreignReasoning, nativeOf, optionsOf } from '../metadata.ts'
import type { EncodedRequest, RequestMode, Target } from '../wire.ts'
import type { OpenAIResponsesDialect } from './types.ts'
import type {
  AssistantContent,
  DocumentBlock,
  ImageBlock,
  TextBlock,
  UserContent,
} from '../../content.ts'
import {
  type AssistantMessage,
  contentOf,
  type ToolResultMessage,
  type UserMessage,
} from '../../message.ts'
import { imageUrl, toDataUrl } from '../media.ts'
import { invalidRequest } from '../wire-error.ts'
import { orderedBlocks, resultText, safeToolCallId } from '../transcript.ts'

type ResponsesTarget = Target<OpenAIResponsesDialect>

/** Writes a request of `POST /responses`. */
export function encodeRequest(
  request: LLMRequest,
  target: ResponsesTarget,
  mode: RequestMode,
): EncodedRequest {
  const warnings: Warning[] = []
  const { params, system } = request
  const fields = {
    model: target.modelId,
    ...(system && { instructions: system }),
    ...params,
    ...textField(request, warnings),
    // The one field that params cannot change: the answer could not be read otherwise.
    ...(mode === 'stream' ? { stream: true } : 'stream' in params && { stream: false }),
    ...toolFields(request, target),
  }
  const input = encodeInput(request, target, warnings)
  return { body: bodyText(fields, 'input', input), path: '/responses', warnings }
}

/** `structure` joins what the caller put in `params.text`; a format of the caller's own stands. */
function textField({ structure, params }: LLMRequest, warnings: Warning[]): object {
  const text = objectOf(params['text'])
  if (!structure || text?.['format'] !== undefined) return {}
  const { schema, isStrict } = toDialect(structure, openaiSchemas)
  if (!isStrict) warnings.push(notStrict)
  return { text: { ...text, format: { type: 'json_schema', ...namedSchema(schema, isStrict) } } }
}

/** True when the answer comes as `{ value: … }`, see `toDialect`. */
export function isWrapped({ structure, params }: LLMRequest): boolean {
  if (!structure || objectOf(params['text'])?.['format'] !== undefined) return false
  return toDialect(structure, openaiSchemas).isWrapped
}

function toolFields({ tools, params }: LLMRequest, { provider }: ResponsesTarget): object {
  const merged = mergeTools({
    provider,
    tools: tools.map((tool) => encodeTool(tool, provider)),
    native: params['tools'],
    namesOf: (tool) => [textOf(tool['name'])].filter((name) => name !== undefined),
  })
  return merged ? { tools: merged } : {}
}

/**
 * Metadata of the tool for this vendor joins its definition, e.g. `{ strict: true }`. The API
 * takes a missing `strict` for true and then changes the schema; false sends it as it is.
 */
function encodeTool(tool: Tool, provider: string): JsonObject {
  const { name, description } = tool
  const { type, ...options } = optionsOf(tool.metadata, provider) ?? {}
  if (type === 'custom') return { type: 'custom', name, description, ...options }
  // The schema is JSON by its type's contract, which `unknown` values cannot say.
  const parameters = tool.parameters as JsonObject
  return { type: 'function', name, description, parameters, strict: false, ...options }
}

function encodeInput(request: LLMRequest, target: ResponsesTarget, warnings: Warning[]): string {
  const mayBeStored = request.params['store'] !== false
  const key = `openai-responses ${target.provider} ${dialectKey(target.dialect)} ${mayBeStored}`
  return encodeHistory(
    request.messages,
    key,
    (messages, found) => {
      let customIds: readonly string[] = []
      return messages.flatMap((message) => {
        if (message.type === 'assistant') customIds = customCallIds(message, target.provider)
        const known = customIds
        const encode = (told: Warning[]): readonly JsonObject[] => {
          if (message.type === 'user') return [encodeUser(message, target)]
          if (message.type === 'assistant')
            return encodeAssistant(message, target, mayBeStored, told)
          return encodeToolResults(message, target, known)
        }
        const itsKey = known.length > 0 ? `${key} ${known.join()}` : key
        return encodeOnce(message, itsKey, encode, found)
      })
    },
    warnings,
  )
}

function encodeUser(message: UserMessage, target: ResponsesTarget): JsonObject {
  const content = message.content.map((block) => encodePart(block, target))
  return { type: 'message', role: 'user', content, ...optionsOf(message.metadata, target.provider) }
}

/** One block as an input part. Metadata of the block for this vendor joins the part, e.g. `{ detail: 'low' }`. */
function encodePart(block: UserContent, target: ResponsesTarget): JsonObject {
  return { ...partOf(block, target), ...optionsOf(block.metadata, target.provider) }
}

function partOf(block: UserContent, target: ResponsesTarget): JsonObject {
  switch (block.type) {
    case 'text':
      return { type: 'input_text', text: block.text }
    case 'image':
      accept('image', block.type, target)
      return { type: 'input_image', image_url: imageUrl(block) }
    case 'document':
      return documentPart(block, target)
    case 'binary':
      accept('document', block.type, target)
      return filePart('file', toDataUrl(block.mimeType, block.data))
    case 'audio':
    case 'video':
      throw refused(block.type, target)
    default:
      return block satisfies never
  }
}

function documentPart(
  { source, mimeType, title }: DocumentBlock,
  target: ResponsesTarget,
): JsonObject {
  if (source.type === 'text') {
    const text = title === undefined ? source.data : `${title}\n\n${source.data}`
    return { type: 'input_text', text }
  }
  accept('document', 'document', target)
  if (source.type === 'url') {
    return { type: 'input_file', file_url: source.url, ...(title && { filename: title }) }
  }
  const name = title ?? (mimeType === 'application/pdf' ? 'document.pdf' : 'document')
  return filePart(name, toDataUrl(mimeType, source.data))
}

function filePart(filename: string, data: string): JsonObject {
  return { type: 'input_file', filename, file_data: data }
}

function accept(kind: 'image' | 'document', named: string, target: ResponsesTarget): void {
  if (!target.dialect.media.includes(kind)) throw refused(named, target)
}

function refused(named: string, { provider }: ResponsesTarget): Error {
  return invalidRequest(provider, `${provider} does not take ${named} input through Responses.`)
}

const api = 'openai-responses'

/**
 * An assistant message as the items it came in, in their order. Items of this vendor go back
 * verbatim; what another vendor gave is degraded to messages and calls.
 */
function encodeAssistant(
  message: AssistantMessage,
  target: ResponsesTarget,
  mayBeStored: boolean,
  warnings: Warning[],
): readonly JsonObject[] {
  const { provider } = target
  const canReplay = canReplayItems(message, provider, mayBeStored)
  if (!canReplay) warnings.push(unstored)
  const items: Record<string, JsonValue | undefined>[] = []
  let previous: AssistantContent | undefined
  for (const { block, call } of orderedBlocks(message, provider)) {
    if (call) items.push(encodeCall(call, target, canReplay))
    else if (block.type === 'text') addText(items, block, { provider, canReplay, previous })
    else {
      const item = itemOf(block, provider, canReplay)
      if (item) items.push(item)
      else if (canReplay) warnings.push(dropWarning(block, provider))
    }
    previous = block
  }
  // The API refuses reasoning without the item it led to, which an answer has that was cut off.
  while (items.at(-1)?.['type'] === 'reasoning') items.pop()
  return items
}

/**
 * The API knows a reasoning item by its encrypted content or, if the response was stored, by its
 * id. Without either it must be left out, and then the items behind it cannot keep their ids:
 * they would ask for the reasoning they belong to.
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

const unstored: Warning = {
  code: 'reasoning_dropped',
  message:
    'Reasoning of a response that was not stored and not encrypted cannot be sent back and was left out.',
  pointer: '/params/include',
}

function dropWarning(block: AssistantContent, provider: string): Warning {
  return block.type === 'reasoning' ? foreignReasoning : droppedBlock(block, provider)
}

/** Parts of one message item are blocks of their own; they are put together again here. */
function addText(
  items: Record<string, JsonValue | undefined>[],
  block: TextBlock,
  { provider, canReplay, previous }: TextPlace,
): void {
  const native = nativeOf(block.metadata, provider, api)
  if (!native && block.text === '') return
  const told = native && itemTold(block, provider)
  const part: JsonObject =
    native?.['type'] === 'refusal'
      ? { ...native, refusal: block.text }
      : { type: 'output_text', annotations: [], ...native, text: block.text }
  const last = items.at(-1)
  if (last && previous?.type === 'text' && sameItem(told, itemTold(previous, provider))) {
    last['content'] = [...(last['content'] as JsonValue[]), part] // only this function writes it
    return
  }
  const item = told ?? { type: 'message', role: 'assistant' }
  items.push({ ...(canReplay ? item : withoutId(item)), content: [part] })
}

interface TextPlace {
  readonly provider: string
  readonly canReplay: boolean
  /** The block or call before this one. */
  readonly previous: AssistantContent | undefined
}

function itemTold(block: TextBlock, provider: string): JsonObject | undefined {
  return objectOf(block.metadata?.[provider]?.['item'])
}

/** Foreign texts, which have no item, are one message as well. */
function sameItem(a: JsonObject | undefined, b: JsonObject | undefined): boolean {
  return a?.['id'] === b?.['id']
}

function itemOf(
  block: AssistantContent,
  provider: string,
  canReplay: boolean,
): Record<string, JsonValue | undefined> | undefined {
  const native = nativeOf(block.metadata, provider, api)
  if (!native || !canReplay) return undefined
  return block.type === 'image' ? { ...native, result: base64Of(block) } : { ...native }
}

function base64Of({ source }: ImageBlock): string | null {
  if (source.type === 'url') return null
  return source.type === 'base64' ? source.data : encodeBase64(source.data)
}

function encodeCall(
  call: ToolCall,
  { provider, dialect }: ResponsesTarget,
  canReplay: boolean,
): Record<string, JsonValue | undefined> {
  const native = nativeOf(call.metadata, provider, api)
  const told = native && (canReplay ? native : withoutId(native))
  const ids = { call_id: safeToolCallId(call.toolCallId, dialect.toolCallId), name: call.toolName }
  if (isCustom(native)) {
    return { ...told, ...ids, input: stringOf(call.arguments['input']) ?? '' }
  }
  return {
    type: 'function_call',
    ...told,
    ...ids,
    arguments: argumentsText(call, native?.['arguments']),
  }
}

const idField = new Set(['id'])

function withoutId(item: JsonObject): JsonObject {
  return without(item, idField)
}

/** Calls of custom tools (free text) have outputs of their own type. */
function customCallIds(message: AssistantMessage, provider: string): readonly string[] {
  return (message.toolCalls ?? [])
    .filter((call) => isCustom(nativeOf(call.metadata, provider, 'openai-responses')))
    .map((call) => call.toolCallId)
}

function isCustom(native: JsonObject | undefined): boolean {
  return native?.['type'] === 'custom_tool_call'
}

/** One output item per result. Texts, images and files that a tool returned are sent as such. */
function encodeToolResults(
  message: ToolResultMessage,
  target: ResponsesTarget,
  customIds: readonly string[],
): readonly JsonObject[] {
  return message.results.map((result) => ({
    type: customIds.includes(result.toolCallId)
      ? 'custom_tool_call_output'
      : 'function_call_output',
    call_id: safeToolCallId(result.toolCallId, target.dialect.toolCallId),
    output: outputOf(result, target),
    ...optionsOf(result.metadata, target.provider),
  }))
}

function outputOf({ result, isError }: ToolResult, target: ResponsesTarget): JsonValue {
  const blocks = contentOf(result)
  if (blocks.length > 0) return blocks.map((block) => outputPart(block, target))
  const text = resultText(result)
  // The format has no error flag; the word is what models look for.
  return isError && !/^error\b/i.test(text) ? `Error: ${text}` : text
}

/** Media that the API does not take are named, not sent: a result must not fail the request. */
function outputPart(block: UserContent, target: ResponsesTarget): JsonObject {
  const { media } = target.dialect
  const isTaken =
    block.type === 'text' ||
    (block.type === 'image' && media.includes('image')) ||
    (block.type === 'document' && (block.source.type === 'text' || media.includes('document')))
  if (isTaken) return encodePart(block, target)
  return { type: 'input_text', text: `[${block.type} that cannot be shown]` }
}
