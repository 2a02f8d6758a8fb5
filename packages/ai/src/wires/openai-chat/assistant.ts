import type { JsonObject, JsonValue } from '@skein/base'
import type { AssistantMessage } from '../../contract/message.ts'
import type { ToolCall } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { nativeOf } from '../native.ts'
import { listOf, objectOf, textOf } from '../read-json.ts'
import { droppedBlock, foreignReasoning } from '../replay-warning.ts'
import { argumentsText } from '../tool-arguments.ts'
import { safeToolCallId } from '../transcript.ts'
import type { ChatTarget } from './request.ts'

/**
 * An assistant message of the history. What this vendor gave beyond UPP is sent back to it; what
 * another vendor gave is left out.
 */
export function encodeAssistant(
  message: AssistantMessage,
  target: ChatTarget,
  warnings: Warning[],
): JsonObject {
  const own = ownMetadata(message, target.provider)
  const { text, refusal, reasoning, extra } = readBlocks(message, target, warnings)
  const calls = message.toolCalls ?? []
  if (reasoning !== '' && !own) warnings.push(foreignReasoning)
  const replayed = own && reasoningFields(reasoning, own, target)
  return {
    role: 'assistant',
    content: withThinking(text || (calls.length > 0 || refusal ? null : ''), replayed?.thinking),
    ...(refusal && { refusal }),
    ...replayed?.fields,
    ...extra,
    ...(own && pick(own, target.dialect.replayFields)),
    ...(calls.length > 0 && { tool_calls: calls.map((call) => encodeCall(call, target)) }),
  }
}

function ownMetadata(message: AssistantMessage, provider: string): JsonObject | undefined {
  const own = message.metadata?.[provider]
  return own?.['api'] === 'openai-chat' ? own : undefined
}

interface AssistantParts {
  text: string
  refusal: string
  reasoning: string
  extra: Record<string, JsonValue>
}

function readBlocks(
  message: AssistantMessage,
  { provider }: ChatTarget,
  warnings: Warning[],
): AssistantParts {
  const parts: AssistantParts = { text: '', refusal: '', reasoning: '', extra: {} }
  for (const block of message.content) {
    const native = nativeOf(block.metadata, provider, 'openai-chat')
    if (block.type === 'text') {
      if (native?.['type'] === 'refusal') parts.refusal += block.text
      else parts.text += block.text
    } else if (block.type === 'reasoning') parts.reasoning += block.text
    else if (block.type === 'audio' && native?.['id']) parts.extra['audio'] = { id: native['id'] }
    else if (block.type === 'image' && native) {
      parts.extra['images'] = [...listOf(parts.extra['images']), native]
    } else warnings.push(droppedBlock(block, provider))
  }
  return parts
}

/** Reasoning goes back in the field it came in, where the vendor asks for that. */
function reasoningFields(
  text: string,
  own: JsonObject,
  { dialect: { reasoning } }: ChatTarget,
): { readonly fields?: JsonObject; readonly thinking?: string } {
  if (reasoning === 'reasoning_details') {
    const details = own['reasoning_details']
    return details === undefined ? {} : { fields: { reasoning_details: details } }
  }
  if (reasoning === 'drop' || text === '') return {}
  return reasoning === 'thinking' ? { thinking: text } : { fields: { [reasoning]: text } }
}

function withThinking(content: string | null, thinking: string | undefined): JsonValue {
  if (thinking === undefined) return content
  const trace = { type: 'thinking', thinking: [{ type: 'text', text: thinking }] }
  return content ? [trace, { type: 'text', text: content }] : [trace]
}

function pick(own: JsonObject, names: readonly string[]): JsonObject {
  const picked: Record<string, JsonValue> = {}
  for (const name of names) if (own[name] !== undefined) picked[name] = own[name]
  return picked
}

function encodeCall(call: ToolCall, { provider, dialect }: ChatTarget): JsonObject {
  const native = nativeOf(call.metadata, provider, 'openai-chat')
  const id = safeToolCallId(call.toolCallId, dialect.toolCallId)
  if (native?.['type'] === 'custom') {
    const input = textOf(call.arguments['input']) ?? ''
    return { ...native, id, type: 'custom', custom: { name: call.toolName, input } }
  }
  const told = objectOf(native?.['function'])
  return {
    ...native,
    id,
    type: 'function',
    function: { ...told, name: call.toolName, arguments: argumentsText(call, told?.['arguments']) },
  }
}
