import { isPlainObject, type JsonObject } from '@skein/base'

/**
 * The largest depth of nested arguments; deeper arguments are rejected, because serialising them would
 * exhaust the stack.
 */
const MAX_DEPTH = 512

/** The arguments of a call, or why its text is not one JSON object. */
export type DecodedArguments =
  | { readonly arguments: JsonObject; readonly invalid?: undefined }
  | { readonly arguments?: undefined; readonly invalid: { text: string; reason: string } }

/**
 * Parses the text of a model's arguments. Nothing is guessed: text that is not one complete JSON object is
 * invalid, so that a truncated call never runs. Empty text means no arguments.
 */
export function parseArguments(text: string): DecodedArguments {
  if (text.trim() === '') return { arguments: {} }
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return invalidArguments(text, error instanceof Error ? error.message : 'not JSON')
  }
  if (!isPlainObject(value)) return invalidArguments(text, 'not a JSON object')
  if (!isShallow(value, text))
    return invalidArguments(text, `nested deeper than ${MAX_DEPTH} levels`)
  return { arguments: value as JsonObject } // `JSON.parse` returns only JSON values
}

function invalidArguments(text: string, reason: string): DecodedArguments {
  return { invalid: { text, reason } }
}

/**
 * Returns whether the data has at most `MAX_DEPTH` levels, without recursion. Also deletes `__proto__` keys
 * on the way.
 */
function isShallow(root: object, text: string): boolean {
  const mayHoldProto = text.includes('__proto__') || text.includes('\\u')
  if (!mayHoldProto && text.length < 2 * MAX_DEPTH) return true
  let level: object[] = [root]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth >= MAX_DEPTH) return false
    const next: object[] = []
    for (const node of level) {
      // An own `__proto__` is deleted: it does harm when a tool copies it with Object.assign or a deep merge.
      if (mayHoldProto && Object.hasOwn(node, '__proto__'))
        Reflect.deleteProperty(node, '__proto__')
      for (const child of Object.values(node) as unknown[])
        if (typeof child === 'object' && child !== null) next.push(child)
    }
    level = next
  }
  return true
}
