import type { JsonObject, JsonValue } from '@skein/base'
import type { AssistantContent } from '../contract/content.ts'
import type { BlockKind } from '../contract/event.ts'
import type { AssistantMessage } from '../contract/message.ts'
import type { ToolCall } from '../contract/tool.ts'

/** One content block or one call of a message. */
export type OrderedBlock =
  | { readonly block: AssistantContent; readonly call?: never }
  | { readonly call: ToolCall; readonly block?: never }

/**
 * Returns content and calls of an assistant message in their original order, if that order is stored
 * under `metadata[provider].order`; otherwise all calls come after the content.
 */
export function orderedBlocks(
  message: AssistantMessage,
  provider: string,
): readonly OrderedBlock[] {
  const { content } = message
  const calls = message.toolCalls ?? []
  const order = message.metadata?.[provider]?.['order']
  // An order that does not match, because the message was edited, is ignored.
  const callCount = Array.isArray(order) ? order.filter((kind) => kind === 'call').length : -1
  const fits =
    callCount === calls.length &&
    (order as readonly JsonValue[]).length === content.length + calls.length
  if (!Array.isArray(order) || !fits) {
    return [...content.map((block) => ({ block })), ...calls.map((call) => ({ call }))]
  }
  let block = 0
  let call = 0
  return order.map((kind) =>
    kind === 'call' ? { call: calls[call++]! } : { block: content[block++]! },
  )
}

/**
 * Returns the message metadata that `orderedBlocks` reads: `{ order }` if a call came before a content
 * block, empty if all calls came last.
 */
export function orderMetadata(kinds: readonly BlockKind[]): JsonObject {
  const firstCall = kinds.indexOf('tool_call')
  const isInterleaved =
    firstCall >= 0 && kinds.slice(firstCall).some((kind) => kind !== 'tool_call')
  if (!isInterleaved) return {}
  return { order: kinds.map((kind) => (kind === 'tool_call' ? 'call' : 'block')) }
}
