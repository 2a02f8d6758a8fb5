import { defaultInputLimits, type JsonValue } from '@skein/base'
import { contentOf } from '../contract/message.ts'
import type { ToolResult } from '../contract/tool.ts'

/**
 * Returns a result as the model sees it: a result that is longer than `maxBytes` (UPP §17.3) is its beginning and its
 * end as text, with a line between them that says how much was cut. `toolExecutions` keep the whole result. Results
 * with media stay whole, because a part of a picture is none.
 */
export function toFittingResult(
  given: ToolResult,
  maxBytes: number = defaultInputLimits.maxToolResultBytes,
): ToolResult {
  const { result } = given
  const text = typeof result === 'string' ? result : JSON.stringify(result)
  if (text.length * 3 <= maxBytes) return given // no character takes more than three bytes per UTF-16 unit
  const bytes = new TextEncoder().encode(text)
  if (bytes.length <= maxBytes || hasMedia(result as JsonValue)) return given
  const head = bytes.subarray(0, edgeOf(bytes, Math.floor(maxBytes * 0.6)))
  const tail = bytes.subarray(edgeOf(bytes, bytes.length - Math.floor(maxBytes * 0.3)))
  const omittedBytes = bytes.length - head.length - tail.length
  const note = `[${omittedBytes} of ${bytes.length} bytes of this result are left out here.]`
  const decoder = new TextDecoder()
  return { ...given, result: `${decoder.decode(head)}\n\n${note}\n\n${decoder.decode(tail)}` }
}

function hasMedia(result: JsonValue): boolean {
  return contentOf(result).some(({ type }) => type !== 'text')
}

/** Returns the last place up to `index` at which a character begins. */
function edgeOf(bytes: Uint8Array, index: number): number {
  let edge = index
  while (edge > 0 && (bytes[edge]! & 0xc0) === 0x80) edge--
  return edge
}
