import { jsonNotesOf, setJsonNotes, type JsonNotes } from './json-stringify.ts'

/**
 * Compares a value with the text that it was parsed from, and stores the text of every number that JavaScript
 * would print differently (`18.0`, `-0.0`, 64-bit integers), so that `stringifyJson` prints the number as it
 * was. Returns false for text that the slower `ExactReader` must handle: a repeated key, an integer-like key,
 * which JavaScript moves to the front, or nesting beyond `maxDepth`. White space and the escapes of strings
 * are not compared. `value` must be `JSON.parse(text)`.
 *
 * The function walks the value and keeps its position in the text. In strings it only looks for the closing
 * quote, which makes this several times faster than reading the text again.
 */
export function keepText(text: string, value: unknown, maxDepth: number): boolean {
  // The spelling of a number is recorded for the object or array around it. No document is a bare string or
  // number.
  if (typeof value === 'string' || typeof value === 'number') return true
  const end = passValue(text, value, skipSpace(text, 0), maxDepth)
  return end !== MISMATCH && skipSpace(text, end) === text.length
}

/** An object or array that contains a value. */
type Holder = { readonly [key: string]: unknown } | readonly unknown[]

const MISMATCH = -1
const QUOTE = 34
const COMMA = 44
const COLON = 58
const BACKSLASH = 92
const ARRAY_INDEX = /^(?:0|[1-9]\d{0,9})$/

/**
 * Each `pass` function takes the position where a token starts and returns the position after it, or
 * MISMATCH.
 */
function passValue(text: string, value: unknown, at: number, depth: number): number {
  if (value === null) return text.charCodeAt(at) === 110 ? at + 4 : MISMATCH
  if (value === true) return text.charCodeAt(at) === 116 ? at + 4 : MISMATCH
  if (typeof value !== 'object') return text.charCodeAt(at) === 102 ? at + 5 : MISMATCH
  if (depth === 0) return MISMATCH
  if (Array.isArray(value)) return passArray(text, value, at, depth - 1)
  return passObject(text, value as { [key: string]: unknown }, at, depth - 1)
}

function passArray(text: string, items: readonly unknown[], at: number, depth: number): number {
  if (text.charCodeAt(at) !== 91) return MISMATCH
  at = skipSpace(text, at + 1)
  if (items.length === 0) return text.charCodeAt(at) === 93 ? at + 1 : MISMATCH
  for (let index = 0; index < items.length; index++) {
    if (index > 0) {
      if (text.charCodeAt(at) !== COMMA) return MISMATCH
      at = skipSpace(text, at + 1)
    }
    const item = items[index]
    if (typeof item === 'string') at = passString(text, item.length, at)
    else if (typeof item === 'number') at = passNumber(text, at, items, index)
    else at = passValue(text, item, at, depth)
    if (at === MISMATCH) return MISMATCH
    at = skipSpace(text, at)
  }
  return text.charCodeAt(at) === 93 ? at + 1 : MISMATCH
}

function passObject(
  text: string,
  object: { [key: string]: unknown },
  at: number,
  depth: number,
): number {
  if (text.charCodeAt(at) !== 123) return MISMATCH
  at++
  let isFirst = true
  for (const key in object) {
    if (isFirst) {
      // JavaScript enumerates integer-like keys first, so checking the first key is enough.
      if (isDigit(key.charCodeAt(0)) && ARRAY_INDEX.test(key)) return MISMATCH
      isFirst = false
    } else {
      if (text.charCodeAt(at) !== COMMA) {
        at = skipSpace(text, at)
        if (text.charCodeAt(at) !== COMMA) return MISMATCH
      }
      at++
    }
    at = passKey(text, key.length, at)
    const value = object[key]
    // Most values are strings and numbers, so these are handled here without a further call.
    if (typeof value === 'string') at = passString(text, value.length, at)
    else if (typeof value === 'number') at = passNumber(text, at, object, key)
    else at = passValue(text, value, at, depth)
    if (at === MISMATCH) return MISMATCH
  }
  at = skipSpace(text, at)
  return text.charCodeAt(at) === 125 ? at + 1 : MISMATCH
}

/** Skips a key and its colon and returns where the value starts. */
function passKey(text: string, length: number, at: number): number {
  if (text.charCodeAt(at) <= 32) at = skipSpace(text, at)
  at = passString(text, length, at)
  if (at === MISMATCH) return text.length
  if (text.charCodeAt(at) <= 32) at = skipSpace(text, at)
  if (text.charCodeAt(at) !== COLON) return text.length
  at++
  return text.charCodeAt(at) <= 32 ? skipSpace(text, at) : at
}

/**
 * Returns the position after a string, or MISMATCH when there is none at `at` or a shorter one, as after a
 * repeated key. A string of n characters takes at least n in the text; every escape takes more. The text is
 * read up to the closing quote even though the length is known: a quote at that distance may belong to another
 * string.
 */
function passString(text: string, length: number, at: number): number {
  if (text.charCodeAt(at) !== QUOTE) return MISMATCH
  const quote = closingQuote(text, at + 1)
  return quote - at - 1 < length ? MISMATCH : quote + 1
}

/** Returns the position after the string that starts at `at`. */
export function endOfString(text: string, at: number): number {
  return closingQuote(text, at + 1) + 1
}

/** Returns the first quote from `from` on that no backslash escapes; `from` is inside a string. */
function closingQuote(text: string, from: number): number {
  // The closing quote is usually near, so 24 characters are compared one by one before `indexOf` is used.
  const near = from + 24
  let quote = from
  for (;;) {
    while (quote < near && text.charCodeAt(quote) !== QUOTE) quote++
    if (quote >= near) quote = text.indexOf('"', quote)
    let before = quote - 1
    while (text.charCodeAt(before) === BACKSLASH) before--
    if ((quote - before) % 2 === 1) return quote
    quote++
  }
}

function passNumber(text: string, at: number, holder: Holder, key: string | number): number {
  const end = endOfNumber(text, at)
  // An integer of up to 15 digits can be written in only one way, except `-0`.
  const isPlain = end <= 0
  const stop = isPlain ? -end : end
  if (stop === at) return MISMATCH
  if (
    isPlain &&
    stop - at < 16 &&
    !(text.charCodeAt(at) === 45 && text.charCodeAt(at + 1) === 48)
  ) {
    return stop
  }
  const source = text.slice(at, stop)
  if (String(Number(source)) !== source) noteNumber(holder, String(key), source)
  return stop
}

function noteNumber(holder: Holder, key: string, source: string): void {
  const note: JsonNotes = jsonNotesOf(holder) ?? {}
  ;(note.numbers ??= new Map()).set(key, source)
  setJsonNotes(holder, note)
}

/**
 * Returns the position after the number that starts at `at`; negated when the number has neither fraction nor
 * exponent.
 */
function endOfNumber(text: string, at: number): number {
  let code = text.charCodeAt(at)
  if (code === 45) code = text.charCodeAt(++at)
  while (isDigit(code)) code = text.charCodeAt(++at)
  if (code !== 46 && code !== 101 && code !== 69) return -at
  while (
    isDigit(code) ||
    code === 46 ||
    code === 101 ||
    code === 69 ||
    code === 43 ||
    code === 45
  ) {
    code = text.charCodeAt(++at)
  }
  return at
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57
}

/**
 * Returns the first position from `at` on without white space. (Beyond the end, `charCodeAt` returns NaN,
 * which ends the loop.)
 */
export function skipSpace(text: string, at: number): number {
  while (text.charCodeAt(at) <= 32) at++
  return at
}
