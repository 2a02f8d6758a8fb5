import { canonicalJson, type JsonValue } from '@skein/base'
import { RuntimeError, type RuntimeErrorCode } from '../error.ts'

/**
 * A copy of a value by way of JSON, so that later changes by its owner change nothing here. Refuses what
 * JSON would lose in silence, and what is too large.
 */
export function jsonCopy(
  value: unknown,
  limits: {
    /** Names the thing in errors, e.g. `The value "cart"`. */
    readonly subject: string
    readonly code: RuntimeErrorCode
    readonly maxBytes: number
  },
): JsonValue {
  const { subject, code, maxBytes } = limits
  let text: string
  try {
    canonicalJson(value)
    text = JSON.stringify(value)
  } catch (cause) {
    throw new RuntimeError(`${subject} is not JSON.`, { code, cause })
  }
  const bytes = Buffer.byteLength(text)
  if (bytes > maxBytes) {
    throw new RuntimeError(`${subject} has ${bytes} bytes.`, {
      code,
      hint: `At most ${maxBytes} are kept; write large things to a file.`,
    })
  }
  return JSON.parse(text) as JsonValue // it was written by JSON.stringify just above
}
