import { SkeinError } from './error.ts'

/** Deeper values are refused: they would overflow the stack of some readers, and of some machines here. */
const MAX_DEPTH = 1000

/**
 * RFC 8785: the one JSON text of a value, so that equal values have equal bytes. What `JSON.stringify` does
 * with `toJSON` and `undefined` is kept (members dropped, `null` in arrays); what it would lose in silence
 * throws: NaN, Infinity, bigint, functions, symbols, lone surrogates, cycles, Map, Set, typed arrays.
 */
export function canonicalJson(value: unknown): string {
  const text = write(value, '', [])
  if (text === undefined) throw unsupported('undefined', '')
  return text
}

/** The text of a value, or undefined for `undefined`. `path` holds the objects around it. */
function write(input: unknown, key: string, path: object[]): string | undefined {
  const value = hasToJson(input) ? input.toJSON(key) : input
  switch (typeof value) {
    case 'string':
      return writeString(value)
    case 'number':
      if (Number.isFinite(value)) return `${value}`
      throw unsupported(`${value}`, key)
    case 'boolean':
      return value ? 'true' : 'false'
    case 'undefined':
      return undefined
    case 'object':
      return value === null ? 'null' : writeContainer(value, key, path)
    default:
      throw unsupported(`a ${typeof value}`, key)
  }
}

function hasToJson(value: unknown): value is { toJSON(key: string): unknown } {
  if ((typeof value !== 'object' || value === null) && typeof value !== 'bigint') return false
  return typeof (value as { toJSON?: unknown }).toJSON === 'function'
}

function writeString(text: string): string {
  if (!/["\\\u0000-\u001f\ud800-\udfff]/.test(text)) return `"${text}"`
  if (/\p{Surrogate}/u.test(text)) {
    throw new SkeinError('A string has half of a surrogate pair, which UTF-8 cannot carry.', {
      code: 'CANONICAL_JSON_LONE_SURROGATE',
      hint: 'Cut strings between characters, or call toWellFormed() first.',
    })
  }
  return JSON.stringify(text)
}

function writeContainer(value: object, key: string, path: object[]): string {
  const depth = path.length
  // A walk round a cycle must meet an ancestor at some power of two, so looking only there finds every
  // cycle after at most two rounds, and costs nothing at the other depths.
  if ((depth & (depth - 1)) === 0 && path.includes(value)) throw cyclic(key)
  if (depth >= MAX_DEPTH) throw tooDeep()
  path.push(value)
  const text = Array.isArray(value) ? writeArray(value, path) : writeObject(value, key, path)
  path.pop()
  return text
}

function writeArray(values: readonly unknown[], path: object[]): string {
  let text = '['
  for (let i = 0; i < values.length; i++) {
    if (i > 0) text += ','
    text += write(values[i], `${i}`, path) ?? 'null'
  }
  return `${text}]`
}

function writeObject(value: object, key: string, path: object[]): string {
  const tag = Object.prototype.toString.call(value)
  if (tag !== '[object Object]') throw unsupported(`a ${tag.slice(8, -1)}`, key)
  let text = '{'
  // The default order of sort() is by UTF-16 code units, which is the order RFC 8785 §3.2.3 asks for.
  for (const name of Object.keys(value).sort()) {
    const member = write((value as Record<string, unknown>)[name], name, path)
    if (member === undefined) continue
    if (text.length > 1) text += ','
    text += `${writeString(name)}:${member}`
  }
  return `${text}}`
}

function unsupported(what: string, key: string): SkeinError {
  const where = key === '' ? 'The value' : `The value at "${key}"`
  return new SkeinError(`${where} is ${what}, which JSON cannot say.`, {
    code: 'CANONICAL_JSON_UNSUPPORTED',
    hint: 'Convert it to a string, a finite number, an array or a plain object first.',
  })
}

function cyclic(key: string): SkeinError {
  return new SkeinError(`The value at "${key}" contains itself.`, {
    code: 'CANONICAL_JSON_CYCLE',
    hint: 'Break the cycle, for example by storing an id instead of the object.',
  })
}

function tooDeep(): SkeinError {
  return new SkeinError(`The value is nested more than ${MAX_DEPTH} levels deep.`, {
    code: 'CANONICAL_JSON_TOO_DEEP',
  })
}
