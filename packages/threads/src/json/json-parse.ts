import { endOfString, keepText, skipSpace } from './json-agree.ts'
import { setJsonNotes, type JsonNotes } from './json-stringify.ts'
import { ThreadError, ThreadLimitError, joinPointer } from '../issue.ts'

/** Limits on the JSON text that is read. */
export interface JsonLimits {
  /** The most UTF-16 units of text. Default 256 Mi. */
  readonly maxLength?: number
  /** The deepest nesting of arrays and objects. Default 256; at most 2,000. */
  readonly maxDepth?: number
}

/** A value read from text, and pointers to repeated keys (the last value is used). */
type JsonReading = {
  readonly value: unknown
  readonly duplicates: readonly string[]
}

const DEFAULT_LENGTH = 256 * 1024 * 1024
const DEFAULT_DEPTH = 256
/**
 * The largest `maxDepth` that is applied. Deeper values would overflow the stack of the recursive readers and
 * writers.
 */
const DEEPEST = 2_000

/**
 * Reads JSON so that `stringifyJson` can print it again without changing a number or the order of keys.
 * Objects are plain; `__proto__` is an ordinary key. Throws `ThreadLimitError` and, for invalid text,
 * `ThreadError`.
 */
export function parseJson(text: string, limits: JsonLimits = {}): JsonReading {
  const maxLength = limits.maxLength ?? DEFAULT_LENGTH
  if (text.length > maxLength) throw new ThreadLimitError('maxLength', maxLength, text.length)
  const maxDepth = Math.min(limits.maxDepth ?? DEFAULT_DEPTH, DEEPEST)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    // The native error message quotes the text, which may contain secrets; only the position is copied from
    // the message.
    const position = /position (\d+)/.exec(String(cause))?.[1]
    throw new ThreadError(`The text is not JSON${position ? ` (position ${position})` : ''}.`, {
      code: 'INVALID_JSON',
    })
  }
  if (keepText(text, value, maxDepth)) return { value, duplicates: [] }
  return new ExactReader(text, maxDepth).read()
}

/**
 * Reads text that is known to be valid JSON, and records what a plain value cannot hold: the spelling of
 * numbers and the order of keys.
 */
class ExactReader {
  readonly #text: string
  readonly #maxDepth: number
  readonly #path: (string | number)[] = []
  readonly #duplicates: string[] = []
  #at = 0

  constructor(text: string, maxDepth: number) {
    this.#text = text
    this.#maxDepth = maxDepth
  }

  read(): JsonReading {
    this.#at = skipSpace(this.#text, 0)
    // The notes about a number are stored for the object or array that contains it. A number at the root has
    // none, so its spelling is lost; no document of this package is a number.
    const value = this.#value({}, '')
    return { value, duplicates: this.#duplicates }
  }

  #value(note: JsonNotes, key: string): unknown {
    switch (this.#text.charCodeAt(this.#at)) {
      case 34:
        return this.#string()
      case 91:
        return this.#array()
      case 123:
        return this.#object()
      case 116:
        return this.#word(true, 4)
      case 102:
        return this.#word(false, 5)
      case 110:
        return this.#word(null, 4)
      default:
        return this.#number(note, key)
    }
  }

  #word(value: boolean | null, length: number): boolean | null {
    this.#at += length
    return value
  }

  #string(): string {
    const start = this.#at
    this.#at = endOfString(this.#text, start)
    const inner = this.#text.slice(start + 1, this.#at - 1)
    return inner.includes('\\') ? (JSON.parse(this.#text.slice(start, this.#at)) as string) : inner
  }

  #number(note: JsonNotes, key: string): number {
    const start = this.#at
    while ('+-.0123456789eE'.includes(this.#text.charAt(this.#at) || ' ')) this.#at++
    const source = this.#text.slice(start, this.#at)
    const value = Number(source)
    if (String(value) !== source) (note.numbers ??= new Map()).set(key, source)
    return value
  }

  #enter(): void {
    if (this.#path.length >= this.#maxDepth) {
      throw new ThreadLimitError('maxDepth', this.#maxDepth, undefined)
    }
  }

  /** Moves past a comma and returns true, or past the closing bracket and returns false. */
  #more(): boolean {
    this.#at = skipSpace(this.#text, this.#at)
    const comma = this.#text.charCodeAt(this.#at++) === 44
    if (comma) this.#at = skipSpace(this.#text, this.#at)
    return comma
  }

  #array(): unknown[] {
    this.#enter()
    const items: unknown[] = []
    const note: JsonNotes = {}
    this.#at = skipSpace(this.#text, this.#at + 1)
    if (this.#text.charCodeAt(this.#at) === 93) {
      this.#at++
      return items
    }
    do {
      this.#path.push(items.length)
      items.push(this.#value(note, String(items.length)))
      this.#path.pop()
    } while (this.#more())
    if (note.numbers) setJsonNotes(items, note)
    return items
  }

  #object(): object {
    this.#enter()
    const object: { [key: string]: unknown } = {}
    const note: JsonNotes = {}
    const keys: string[] = []
    this.#at = skipSpace(this.#text, this.#at + 1)
    if (this.#text.charCodeAt(this.#at) === 125) {
      this.#at++
      return object
    }
    do {
      const key = this.#string()
      this.#at = skipSpace(this.#text, skipSpace(this.#text, this.#at) + 1)
      this.#path.push(key)
      if (Object.hasOwn(object, key)) {
        this.#duplicates.push(joinPointer('', ...this.#path))
        note.numbers?.delete(key)
      } else {
        keys.push(key)
      }
      setOwn(object, key, this.#value(note, key))
      this.#path.pop()
    } while (this.#more())
    if (Object.keys(object).some((key, index) => key !== keys[index])) note.keys = keys
    if (note.numbers || note.keys) setJsonNotes(object, note)
    return object
  }
}

/** Assigns an own property of any name. For `__proto__` a plain assignment would change the prototype. */
export function setOwn<T>(object: { [key: string]: T }, key: string, value: NoInfer<T>): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, {
      value,
      writable: true,
      enumerable: true,
      configurable: true,
    })
  } else {
    object[key] = value
  }
}
