import {
  messageOf,
  freezeTree,
  encodeBase64,
  isPlainObject,
  SkeinError,
  wellFormed,
  type JsonObject,
  type JsonValue,
} from '@skein/base'

/**
 * The largest depth of a nested result; deeper results are rejected, because serialising them would exhaust
 * the stack.
 */
const MAX_DEPTH = 512
/**
 * The largest number of values in a result. Array holes count too, and
 * an object that occurs twice counts twice.
 */
const MAX_VALUES = 1_000_000

/**
 * The result rule: converts what a tool returns into frozen JSON data, once, so that the model, the history,
 * an agent's saved state and the runtime's log all contain the same value.
 *
 * | returned                                | becomes                                                |
 * |-----------------------------------------|--------------------------------------------------------|
 * | text, finite number, boolean, null      | itself (-0 is 0, half of a surrogate pair is U+FFFD)   |
 * | undefined                               | null; a member of an object is left out                |
 * | bigint                                  | decimal text                                           |
 * | Date, RegExp                            | ISO 8601 text, the text of the expression              |
 * | array, Set                              | array; a hole is null                                  |
 * | Map                                     | object if every key is text, else array of [key, value] |
 * | ArrayBuffer, DataView, views of bytes (Uint8Array, Buffer, Int8Array) | `{ "$bytes": "<base64>" }` |
 * | other typed arrays                      | array of numbers (64-bit integers as decimal text)     |
 * | anything with `toJSON`                  | what `toJSON` returns, by this rule                    |
 * | Error                                   | `{ name, message }`, and `code` if it has one          |
 * | UPP image with bytes                    | the same image with a base64 source                    |
 * | other class instance                    | its own enumerable fields; functions are left out      |
 *
 * Everything else throws `ToolResultError` with the path of the value: NaN and infinities, an invalid Date, a
 * function or symbol, a cycle, a promise or another object without fields (a stream, a `Response`), a getter
 * or proxy that throws, more than 512 levels or a million values. `contentOf` reads media blocks (image,
 * audio, video) back from this form.
 */
export function toResultJson(value: unknown, root = 'result'): JsonValue {
  if (typeof value === 'object' && value !== null && madeResults.has(value))
    return value as JsonValue
  const walk: Walk = { path: [root], above: new Set(), left: MAX_VALUES }
  const json = freezeTree(toJson(value, walk) ?? null)
  if (typeof json === 'object' && json !== null) madeResults.add(json)
  return json
}

/** The values that `toResultJson` has returned; they are not converted again when an outcome is reused. */
const madeResults = new WeakSet<object>()

/**
 * Thrown for a value that JSON cannot express. The tool has already run and is not run again because of this error.
 */
export class ToolResultError extends SkeinError {
  /** The place of the value, e.g. `result.rows[3].score`. */
  readonly path: string

  constructor(path: string, problem: string, cause?: unknown) {
    super(`${path} ${problem}`, {
      code: 'TOOL_RESULT_NOT_JSON',
      hint: 'Return plain data: text, finite numbers, dates, bytes, lists, objects or content blocks.',
      cause,
    })
    this.path = path
  }
}

interface Walk {
  /** The member names from the root to the current value, as they are written in code. */
  readonly path: string[]
  /** The objects that contain the current value; if one of them occurs again, there is a cycle. */
  readonly above: Set<object>
  left: number
}

/** Converts one value. Returns undefined for a value that objects leave out and lists write as null. */
function toJson(value: unknown, walk: Walk): JsonValue | undefined {
  if (--walk.left < 0) throw refusedResult(walk, `makes more than ${MAX_VALUES} values`)
  switch (typeof value) {
    case 'string':
      return wellFormed(value)
    case 'boolean':
    case 'undefined':
      return value
    case 'bigint':
      return `${value}`
    case 'object':
      return value && objectToJson(value, walk)
    case 'number':
      if (Number.isFinite(value)) return value || 0 // -0 becomes 0
  }
  throw refusedResult(walk, typeof value === 'number' ? `is ${value}` : `is a ${typeof value}`)
}

function objectToJson(value: object, walk: Walk): JsonValue | undefined {
  if (walk.above.has(value)) throw refusedResult(walk, 'is a cycle: it holds itself')
  if (walk.above.size >= MAX_DEPTH)
    throw refusedResult(walk, `is nested deeper than ${MAX_DEPTH} levels`)
  walk.above.add(value)
  try {
    return isPlainObject(value) && !hasToJSON(value)
      ? fieldsToJson(value, walk)
      : specialToJson(value, walk)
  } catch (error) {
    if (error instanceof ToolResultError) throw error
    throw refusedResult(walk, `cannot be read: ${messageOf(error)}`, error) // a getter or a proxy threw
  } finally {
    walk.above.delete(value)
  }
}

/**
 * Converts all objects but plain ones. The order of the checks matters: a Date and a Buffer have a `toJSON`
 * of their own.
 */
function specialToJson(value: object, walk: Walk): JsonValue | undefined {
  if (value instanceof Date) {
    if (Number.isNaN(+value)) throw refusedResult(walk, 'is an invalid Date')
    return value.toISOString()
  }
  const bytes = bytesOf(value)
  if (bytes) return { $bytes: encodeBase64(bytes) }
  if (hasToJSON(value)) {
    const json = value.toJSON()
    if (json !== value) return toJson(json, walk)
  }
  if (Array.isArray(value) || ArrayBuffer.isView(value))
    return listToJson(value as ArrayLike<unknown>, walk)
  if (value instanceof Set) return listToJson([...value], walk)
  if (value instanceof Map) {
    const entries = [...value]
    if (!entries.every(([key]) => typeof key === 'string')) return listToJson(entries, walk)
    const copy: Record<string, JsonValue> = {}
    for (const [key, member] of entries as [string, unknown][]) addMember(copy, key, member, walk)
    return copy
  }
  if (value instanceof RegExp) return `${value}`
  if (value instanceof Number || value instanceof String || value instanceof Boolean)
    return toJson(value.valueOf(), walk)
  if (value instanceof Error) {
    const { name, message, code } = value as Error & { readonly code?: unknown }
    const isCode = typeof code === 'string' || Number.isFinite(code)
    return fieldsToJson({ name, message, code: isCode ? code : undefined }, walk)
  }
  return fieldsToJson(value, walk)
}

/** Converts plain objects and class instances. Defines own data properties, as `JSON.parse` does. */
function fieldsToJson(value: object, walk: Walk): JsonObject {
  const isLiteral = isPlainObject(value)
  const copy: Record<string, JsonValue> = {}
  const keys = Object.keys(value)
  if (!isLiteral && keys.length === 0) {
    const tag = Object.prototype.toString.call(value).slice('[object '.length, -1)
    if (tag !== 'Object') throw refusedResult(walk, `is a ${tag}`)
  }
  for (const key of keys) {
    const member: unknown = Reflect.get(value, key)
    // Functions of class instances, and the `toJSON` that was just called, are not data.
    if (typeof member === 'function' && (!isLiteral || key === 'toJSON')) continue
    addMember(copy, key, member, walk)
  }
  const { type, source } = copy
  if (type === 'image' && isPlainObject(source) && source['type'] === 'bytes') {
    const data = source['data']
    if (isPlainObject(data) && typeof data['$bytes'] === 'string')
      copy['source'] = { type: 'base64', data: data['$bytes'] }
  }
  return copy
}

function listToJson(list: ArrayLike<unknown>, walk: Walk): JsonValue {
  const { length } = list
  if (!Number.isSafeInteger(length) || length > walk.left)
    throw refusedResult(walk, `has ${length} items`)
  const copy: JsonValue[] = []
  for (let index = 0; index < length; index++)
    copy.push(at(walk, `[${index}]`, list[index]) ?? null)
  return copy
}

function at(walk: Walk, name: string, value: unknown): JsonValue | undefined {
  walk.path.push(name)
  const json = toJson(value, walk)
  walk.path.pop() // not needed after a throw, because the error has already used the path
  return json
}

/** Returns the bytes of a buffer, or of a view whose elements are single bytes; undefined for anything else. */
function bytesOf(value: object): Uint8Array | undefined {
  if (value instanceof ArrayBuffer) return new Uint8Array(value)
  if (!ArrayBuffer.isView(value)) return undefined
  const { buffer, byteOffset, byteLength } = value
  const { BYTES_PER_ELEMENT = 1 } = value as Partial<Uint8Array> // a DataView has no `BYTES_PER_ELEMENT`
  return BYTES_PER_ELEMENT === 1 ? new Uint8Array(buffer, byteOffset, byteLength) : undefined
}

function hasToJSON(value: object): value is { toJSON(): unknown } {
  return 'toJSON' in value && typeof value.toJSON === 'function'
}

/** Converts a member and adds it to the copy, unless its value is undefined. */
function addMember(copy: object, key: string, member: unknown, walk: Walk): void {
  const name = /^[a-z_$][\w$]*$/i.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`
  const value = at(walk, name, member)
  if (value === undefined) return
  // The member is defined, because assigning a key named `__proto__` would set the prototype.
  Object.defineProperty(copy, wellFormed(key), {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  })
}

function refusedResult({ path }: Walk, problem: string, cause?: unknown): ToolResultError {
  const pathText = path.length > 12 ? [...path.slice(0, 6), ' … ', ...path.slice(-4)] : path
  return new ToolResultError(pathText.join(''), problem, cause)
}
