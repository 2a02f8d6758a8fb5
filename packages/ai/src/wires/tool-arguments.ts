import type { JsonValue } from '@skein/base'
import type { ToolCall } from '../contract/tool.ts'

/**
 * The arguments of a call as JSON text for its history: the model's own text where it still says
 * the same (so that the vendor's prompt cache matches byte by byte), else written anew. Arguments
 * that were never valid are sent as `{}`, because servers parse them; the result tells the model.
 */
export function argumentsText(call: ToolCall, verbatim: JsonValue | undefined): string {
  const written = JSON.stringify(call.arguments)
  if (typeof verbatim !== 'string') return written
  return rewritten(verbatim) === written ? verbatim : written
}

/** The text to keep for replay: undefined when writing the parsed arguments gives it back. */
export function verbatimArguments(text: string): string | undefined {
  const again = rewritten(text)
  return again === undefined || again === text ? undefined : text
}

function rewritten(text: string): string | undefined {
  try {
    return JSON.stringify(JSON.parse(text))
  } catch {
    return undefined // Cut off or malformed: there is nothing to replay.
  }
}
