import { SkeinError } from './error.ts'

/** The deepest nesting that is accepted. Deeper values could overflow the stack here or in a reader. */
const MAX_DEPTH = 1000

/**
 * Returns the canonical JSON text of a value (RFC 8785), so that equal values have equal bytes. `toJSON` and
 * `undefined` are treated as in `JSON.stringify`: an undefined member is left out, an undefined array item
 * becomes `null`. Values that JSON cannot represent exactly throw: NaN, Infinity, bigint, functions, symbols,
 * lone surrogates, cycles, Map, Set, typed arrays.
 */
export function canonicalJson(value: unknown): string {
  const text = write(value, '', [])
  if (text === undefined) throw unsupported('undefined', '')
  return text
}

type Key = string | number

/**
 * Returns the JSON text of a value, or undefined for `undefined`. `path` lists the objects that contain the
 * value.
 */
function write(value: unknown, key: Key, path: object[]): string | undefined {
  switch (typeof value) {
    case 'string':
      return writeString(value)
    case 'number':
      if (Number.isFinite(value)) return `${value}`
      throw unsupported(`${value}`, key)
    case 'boolean':
      return `${value}`
    case 'undefined':
      return undefined
    case 'object':
      return value === null ? 'null' : writeResolved(value, key, path)
    default:
      throw unsupported(`a ${typeof value}`, key)
  }
}

function writeString(text: string): string {
  if (text.length < 48 && needsNoEscape(text)) return `"${text}"`
  const json = JSON.stringify(text)
  // JSON.stringify escapes as RFC 8785 §3.2.2.2 asks, and writes a lone surrogate as \udxxx. Only a text with
  // `\ud` in its JSON needs the slower search for lone surrogates.
  if (json.includes('\\ud') && /[\ud800-\udfff]/u.test(text)) {
    throw new SkeinError('A string has half of a surrogate pair, which UTF-8 cannot carry.', {
      code: 'CANONICAL_JSON_LONE_SURROGATE',
      hint: 'Cut strings between characters, or call toWellFormed() first.',
    })
  }
  return json
}

/**
 * Checks whether a string can be quoted without escapes. Most keys and many values are short and plain; for
 * them this is twice as fast as JSON.stringify.
 */
function needsNoEscape(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i)
    if (unit < 0x20 || unit === 0x22 || unit === 0x5c || unit >= 0xd800) return false
  }
  return true
}

/**
 * Writes an object, or the value that its `toJSON` returns. As in JSON.stringify, a `toJSON` of the returned
 * object is not called.
 */
function writeResolved(value: object, key: Key, path: object[]): string | undefined {
  const { toJSON } = value as { toJSON?: unknown }
  if (typeof toJSON !== 'function') return writeContainer(value, key, path)
  const json: unknown = toJSON.call(value, `${key}`)
  const nested = typeof json === 'object' && json !== null
  return nested ? writeContainer(json, key, path) : write(json, key, path)
}

function writeContainer(value: object, key: Key, path: object[]): string {
  const depth = path.length
  // In a cycle, every further level of depth meets an ancestor again. So it is enough to check where the
  // depth is a power of two: that finds each cycle before the depth has doubled.
  if ((depth & (depth - 1)) === 0 && path.includes(value)) {
    throw new SkeinError(`The value at "${key}" contains itself.`, {
      code: 'CANONICAL_JSON_CYCLE',
      hint: 'Break the cycle, for example by storing an id instead of the object.',
    })
  }
  if (depth >= MAX_DEPTH) {
    throw new SkeinError(`The value is nested more than ${MAX_DEPTH} levels deep.`, {
      code: 'CANONICAL_JSON_TOO_DEEP',
    })
  }
  path.push(value)
  const text = Array.isArray(value) ? writeArray(value, path) : writeObject(value, key, path)
  path.pop()
  return text
}

function writeArray(values: readonly unknown[], path: object[]): string {
  let text = '['
  for (let i = 0; i < values.length; i++) {
    if (i > 0) text += ','
    text += write(values[i], i, path) ?? 'null'
  }
  return `${text}]`
}

function writeObject(value: object, key: Key, path: object[]): string {
  const prototype: unknown = Object.getPrototypeOf(value)
  // Plain objects and class instances are fully described by their fields; Map, Uint8Array and similar
  // objects are not, and are rejected.
  if (prototype !== Object.prototype && prototype !== null && tagOf(value) !== 'Object')
    throw unsupported(`a ${tagOf(value)}`, key)
  let text = '{'
  for (const name of sortedKeys(value)) {
    const member = write((value as Record<string, unknown>)[name], name, path)
    if (member === undefined) continue
    text += `${text.length > 1 ? ',' : ''}${writeString(name)}:${member}`
  }
  return `${text}}`
}

function tagOf(value: object): string {
  return Object.prototype.toString.call(value).slice(8, -1)
}

/**
 * Returns the keys sorted by UTF-16 code units (RFC 8785 §3.2.3), which is how `<` and a plain `sort`
 * compare.
 */
function sortedKeys(value: object): string[] {
  const keys = Object.keys(value)
  for (let i = 1; i < keys.length; i++) {
    if (keys[i]! < keys[i - 1]!) return keys.length > 20 ? keys.sort() : insertionSort(keys, i)
  }
  return keys
}

/**
 * Sorts the keys in place. For the few keys of a usual object, this takes a third of the time of `sort`. The
 * keys before index `from` must be sorted already.
 */
function insertionSort(keys: string[], from: number): string[] {
  for (let i = from; i < keys.length; i++) {
    const key = keys[i]!
    let at = i
    while (at > 0 && keys[at - 1]! > key) keys[at] = keys[--at]!
    keys[at] = key
  }
  return keys
}

function unsupported(what: string, key: Key): SkeinError {
  const where = key === '' ? 'The value' : `The value at "${key}"`
  return new SkeinError(`${where} is ${what}, which JSON cannot say.`, {
    code: 'CANONICAL_JSON_UNSUPPORTED',
    hint: 'Convert it to a string, a finite number, an array or a plain object first.',
  })
}
