import { isPlainObject, type JsonObject, type JsonValue } from '@skein/base'
import type { UserContent } from '../../contract/content.ts'
import { contentOf } from '../../contract/message.ts'
import type { ToolCall, ToolResult } from '../../contract/tool.ts'
import { documentSource, imageSource } from '../media-source.ts'
import { resultText } from '../transcript.ts'
import { optionsOf } from '../wire-options.ts'
import { bytesSource, mediaPart } from './media-part.ts'
import type { EncodeOptions } from './request-message.ts'
import { API, type GooglePart } from './types.ts'

/** A result names its call by function name, and by id where the call has one. */
export function encodeResult(result: ToolResult, options: EncodeOptions): GooglePart {
  const { provider, calls } = options
  const call = calls.find(({ toolCallId }) => toolCallId === result.toolCallId)
  const { output, parts } = encodeOutput(result.result)
  const isAnonymous = call !== undefined && hasGeneratedId(call, provider)
  return {
    functionResponse: {
      ...(!isAnonymous && { id: result.toolCallId }),
      name: call?.toolName ?? result.toolName ?? result.toolCallId,
      response: wrap(output, result.isError === true),
      ...(parts.length > 0 && { parts }),
      ...optionsOf(result.metadata, provider),
    },
  }
}

/** The vendor gave the call no id, so it gets none back. */
export function hasGeneratedId({ metadata }: ToolCall, provider: string): boolean {
  const own = metadata?.[provider]
  return own?.['api'] === API && own['generatedId'] === true
}

/** Media go beside the response; text and everything else are the response. */
function encodeOutput(result: unknown): { output: JsonValue; parts: readonly GooglePart[] } {
  const blocks = contentOf(result)
  if (blocks.length === 0) return { output: toJson(result), parts: [] }
  const parts = blocks.flatMap(encodeMedia)
  const texts = blocks.flatMap(textsOf)
  return { output: texts.join('\n'), parts }
}

function textsOf(block: UserContent): readonly string[] {
  if (block.type === 'text') return [block.text]
  return block.type === 'document' && block.source.type === 'text' ? [block.source.data] : []
}

function encodeMedia(block: UserContent): readonly GooglePart[] {
  switch (block.type) {
    case 'text':
      return []
    case 'image':
      return [mediaPart(imageSource(block))]
    case 'document': {
      const source = documentSource(block)
      return 'text' in source ? [] : [mediaPart(source)]
    }
    default:
      return [mediaPart(bytesSource(block))]
  }
}

/**
 * The response must be an object, in which the API reads `output` and `error`: an object without
 * those names is the output itself, everything else is wrapped.
 */
function wrap(output: JsonValue, isError: boolean): JsonObject {
  if (isError) return { error: output }
  if (!isPlainObject(output)) return { output }
  return 'output' in output || 'error' in output ? { output } : output
}

/** What JSON makes of it; bytes, cycles and the like as `resultText` tells them. */
function toJson(result: unknown): JsonValue {
  if (typeof result === 'string') return result
  const text = resultText(result)
  try {
    return text === '' ? null : (JSON.parse(text) as JsonValue)
  } catch {
    return text
  }
}
