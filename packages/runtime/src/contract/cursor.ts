import { decodeBase64Url, encodeBase64Url } from '@skein/base'
import { RuntimeError } from './error.ts'

/** The parts of a place in a list: numbers and ids. */
type Parts = readonly (string | number)[]

/** Encodes a place in a list as the cursor with which the next page begins. Clients pass it on as it is. */
export function encodeCursor(parts: Parts): string {
  return encodeBase64Url(new TextEncoder().encode(JSON.stringify(parts)))
}

/**
 * Decodes a cursor. `types` are the types of its parts, and `list` is the list in the text of the error, e.g.
 * "the inbox". Throws `INPUT_INVALID` for any other text.
 */
export function decodeCursor<T extends Parts>(
  cursor: string,
  types: readonly ('string' | 'number')[],
  list: string,
): T {
  try {
    const parts: unknown = JSON.parse(new TextDecoder().decode(decodeBase64Url(cursor)))
    if (
      Array.isArray(parts) &&
      parts.length === types.length &&
      parts.every((part, index) => typeof part === types[index] && part !== null)
    )
      return parts as unknown as T // the types were checked
  } catch {
    // Not JSON: the error below says what to do.
  }
  throw new RuntimeError(`The cursor is not one of ${list}.`, {
    code: 'INPUT_INVALID',
    hint: 'Pass the `nextCursor` of the page before, or none to begin.',
  })
}
