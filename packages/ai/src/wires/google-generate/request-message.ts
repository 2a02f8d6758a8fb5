import type { JsonObject } from '@skein/base'
import type { AssistantContent, UserContent } from '../../contract/content.ts'
import type { AssistantMessage, Message } from '../../contract/message.ts'
import type { ToolCall } from '../../contract/tool.ts'
import type { Warning } from '../../contract/turn.ts'
import { documentSource, imageSource } from '../media-source.ts'
import { nativeOf } from '../native.ts'
import { objectOf, without } from '../read-json.ts'
import { droppedBlock, foreignReasoning } from '../replay-warning.ts'
import { orderedBlocks } from '../transcript.ts'
import { optionsOf } from '../wire-options.ts'
import { bytesSource, mediaPart, textSource } from './media-part.ts'
import { encodeResult, hasGeneratedId } from './request-result.ts'
import { API, type GooglePart } from './types.ts'

export interface EncodeOptions {
  readonly provider: string
  /** See `GoogleDialect.unsignedCall`. */
  readonly unsigned: string | undefined
  /** The calls of the message before: what results answer. */
  readonly calls: readonly ToolCall[]
  readonly warnings: Warning[]
}

/** One message as one entry of `contents`; none when nothing of it can be said there. */
export function encodeMessage(message: Message, options: EncodeOptions): readonly JsonObject[] {
  const parts = encodeParts(message, options)
  if (parts.length === 0) return []
  return [{ role: message.type === 'assistant' ? 'model' : 'user', parts }]
}

function encodeParts(message: Message, options: EncodeOptions): readonly GooglePart[] {
  switch (message.type) {
    case 'user':
      return message.content.map((block) => encodeUserBlock(block, options))
    case 'assistant':
      return signed(encodeAssistant(message, options), options)
    case 'tool_result':
      return message.results.map((result) => encodeResult(result, options))
  }
}

function encodeUserBlock(block: UserContent, { provider, warnings }: EncodeOptions): GooglePart {
  const more = optionsOf(block.metadata, provider)
  switch (block.type) {
    case 'text':
      return { text: block.text, ...more }
    case 'image':
      return { ...mediaPart(imageSource(block)), ...more }
    case 'document': {
      const source = documentSource(block)
      if (block.title !== undefined) {
        const message = `The title of a document (${block.title}) cannot be sent to ${provider}.`
        warnings.push({ code: 'unsupported_field', message })
      }
      return { ...mediaPart('text' in source ? textSource(source) : source), ...more }
    }
    default:
      return { ...mediaPart(bytesSource(block)), ...more }
  }
}

function encodeAssistant(message: AssistantMessage, options: EncodeOptions): GooglePart[] {
  const { provider } = options
  // Thoughts without a signature have no mark of their own: the message tells where they are from.
  const isOwn = message.metadata?.[provider]?.['api'] === API
  const parts: GooglePart[] = []
  for (const { block, call } of orderedBlocks(message, provider)) {
    const part = call ? encodeCall(call, provider) : encodeBlock(block, isOwn, options)
    if (part) parts.push(part)
  }
  return parts
}

function encodeBlock(
  block: AssistantContent,
  isOwn: boolean,
  { provider, warnings }: EncodeOptions,
): GooglePart | undefined {
  const native = nativeOf(block.metadata, provider, API)
  switch (block.type) {
    case 'text':
      return block.text === '' && !native ? undefined : { text: block.text, ...native }
    case 'reasoning':
      if (isOwn || native) return { text: block.text, thought: true, ...native }
      warnings.push(foreignReasoning)
      return undefined
    case 'native':
      if (!native) warnings.push(droppedBlock(block, provider))
      return native
    case 'image':
      return { ...mediaPart(imageSource(block)), ...native }
    default:
      return { ...mediaPart(bytesSource(block)), ...native }
  }
}

function encodeCall(call: ToolCall, provider: string): GooglePart {
  const native = nativeOf(call.metadata, provider, API) ?? {}
  const functionCall = {
    ...objectOf(native['functionCall']),
    ...(!hasGeneratedId(call, provider) && { id: call.toolCallId }),
    name: call.toolName,
    args: call.arguments,
  }
  return { functionCall, ...without(native, functionCallKey) }
}

const functionCallKey = new Set(['functionCall'])

/** Only the first of several calls carries a signature; one that has none gets the stand-in. */
function signed(parts: GooglePart[], { unsigned }: EncodeOptions): readonly GooglePart[] {
  if (unsigned === undefined) return parts
  const first = parts.findIndex((part) => 'functionCall' in part)
  if (first < 0 || 'thoughtSignature' in parts[first]!) return parts
  return parts.map((part, index) =>
    index === first ? { ...part, thoughtSignature: unsigned } : part,
  )
}
