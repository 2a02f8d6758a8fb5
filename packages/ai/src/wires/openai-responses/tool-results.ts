import type { JsonObject, JsonValue } from '@skein/base'
import type { UserContent } from '../../contract/content.ts'
import { contentOf, type AssistantMessage, type ToolResultMessage } from '../../contract/message.ts'
import { nativeOf } from '../native.ts'
import { resultText, safeToolCallId } from '../transcript.ts'
import { optionsOf } from '../wire-options.ts'
import type { ToolResult } from '../../contract/tool.ts'
import { encodePart } from './user.ts'
import type { ResponsesTarget } from './request.ts'

/** Calls of custom tools (free text) have outputs of their own type. */
export function customCallIds(message: AssistantMessage, provider: string): readonly string[] {
  return (message.toolCalls ?? [])
    .filter((call) => isCustom(nativeOf(call.metadata, provider, 'openai-responses')))
    .map((call) => call.toolCallId)
}

export function isCustom(native: JsonObject | undefined): boolean {
  return native?.['type'] === 'custom_tool_call'
}

/** One output item per result. Texts, images and files that a tool returned are sent as such. */
export function encodeToolResults(
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
