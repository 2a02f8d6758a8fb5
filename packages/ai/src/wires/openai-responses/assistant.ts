import { encodeBase64, type JsonObject, type JsonValue } from '@skein/base'
import type { AssistantContent, ImageBlock, TextBlock } from '../../contract/content.ts'
import type { AssistantMessage } from '../../contract/message.ts'
import type { ToolCall } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { nativeOf } from '../native.ts'
import { objectOf, stringOf, textOf, without } from '../read-json.ts'
import { droppedBlock, foreignReasoning } from '../replay-warning.ts'
import { argumentsText } from '../tool-arguments.ts'
import { orderedBlocks, safeToolCallId } from '../transcript.ts'
import type { ResponsesTarget } from './request.ts'
import { isCustom } from './tool-results.ts'

const api = 'openai-responses'

/**
 * An assistant message as the items it came in, in their order. Items of this vendor go back
 * verbatim; what another vendor gave is degraded to messages and calls.
 */
export function encodeAssistant(
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
