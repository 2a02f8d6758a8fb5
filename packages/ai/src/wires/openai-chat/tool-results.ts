import type { JsonObject } from '@skein/base'
import type { UserContent } from '../../contract/content.ts'
import { contentOf, type ToolResultMessage } from '../../contract/message.ts'
import type { ToolResult } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { resultText, safeToolCallId } from '../transcript.ts'
import { optionsOf } from '../wire-options.ts'
import { encodePart } from './user.ts'
import type { ChatTarget } from './request.ts'

/**
 * One `tool` message per result. They hold text only, so media that a tool returned follow in a
 * user message behind all results; media the vendor cannot take are named and left out.
 */
export function encodeToolResults(
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
