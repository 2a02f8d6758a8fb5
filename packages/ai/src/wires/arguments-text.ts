import { type JsonValue, wellFormedJson } from '@skein/base'
import type { ToolCall } from '../contract/tool.ts'

/**
 * Writes the arguments of a call as JSON text for the history. The model's own text is used if it has
 * the same content, so that the vendor's prompt cache matches byte by byte. Arguments that were never
 * valid are sent as `{}`, because servers parse them; the tool result explains the error.
 */
export function argumentsText(call: ToolCall, verbatim: JsonValue | undefined): string {
  const canonicalText = wellFormedJson(JSON.stringify(call.arguments))
  if (typeof verbatim !== 'string') return canonicalText
  return rewritten(verbatim) === canonicalText ? verbatim : canonicalText
}

/**
 * Returns the argument text to keep, to be sent back exactly; undefined if the text is not JSON, or if
 * writing the parsed arguments gives the same text.
 */
export function verbatimArguments(text: string): string | undefined {
  const again = rewritten(text)
  return again === undefined || again === text ? undefined : text
}

function rewritten(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text))
  } catch {
    return undefined // cut off or malformed: there is nothing to replay
  }
}
