/**
 * Checks whether printing `value` would reproduce `text`, apart from white space and string escapes: no
 * number whose text would change, no repeated key, no integer-like key that JavaScript moves to the front, no
 * nesting beyond `maxDepth`. `value` must be `JSON.parse(text)`.
 *
 * The function walks the value and keeps its position in the text. Since the length of each string is known,
 * the content of strings is skipped without reading it, which makes this several times faster than scanning
 * the text.
 */
export function agreesWithText(text: string, value: unknown, maxDepth: number): boolean {
  return passValue(text, value, skipSpace(text, 0), maxDepth) !== MISMATCH
}

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
  if (typeof value === 'string') {
    return text.charCodeAt(at) === QUOTE ? passString(text, value.length, at) : MISMATCH
  }
  if (typeof value === 'number') return passNumber(text, at)
  if (typeof value !== 'object' || value === null) return at + (value === false ? 5 : 4)
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
    at = passValue(text, items[index], at, depth)
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
  at = skipSpace(text, at + 1)
  let first = true
  for (const key in object) {
    if (first) {
      // JavaScript enumerates integer-like keys first, so checking the first key is enough.
      if (isDigit(key.charCodeAt(0)) && ARRAY_INDEX.test(key)) return MISMATCH
      first = false
    } else {
      if (text.charCodeAt(at) !== COMMA) return MISMATCH
      at++
    }
    at = passKey(text, key.length, at)
    const value = object[key]
    at = passValue(text, value, at, depth)
    if (at === MISMATCH) return MISMATCH
    if (text.charCodeAt(at) <= 32) at = skipSpace(text, at)
  }
  return text.charCodeAt(at) === 125 ? at + 1 : MISMATCH
}

/**
 * Skips a key and its colon and returns where the value starts. The first branch handles text without white
 * space.
 */
function passKey(text: string, length: number, at: number): number {
  const end = at + 1 + length
  if (
    text.charCodeAt(at) === QUOTE &&
    text.charCodeAt(end) === QUOTE &&
    text.charCodeAt(end + 1) === COLON &&
    text.charCodeAt(end - 1) !== BACKSLASH
  ) {
    return text.charCodeAt(end + 2) <= 32 ? skipSpace(text, end + 2) : end + 2
  }
  at = skipSpace(text, at)
  if (text.charCodeAt(at) !== QUOTE) return text.length
  return skipSpace(text, skipSpace(text, passString(text, length, at)) + 1)
}

/**
 * Returns the position after a string. A string of n characters takes at least n in the text, so its closing
 * quote is not before `at + 1 + n`; an unescaped quote exactly there is the closing quote.
 */
function passString(text: string, length: number, at: number): number {
  const end = at + 1 + length
  if (text.charCodeAt(end) === QUOTE && text.charCodeAt(end - 1) !== BACKSLASH) return end + 1
  return endOfString(text, at)
}

/** Returns the position after the string that starts at `at`. */
export function endOfString(text: string, at: number): number {
  let quote = at
  for (;;) {
    quote = text.indexOf('"', quote + 1)
    let before = quote - 1
    while (text.charCodeAt(before) === BACKSLASH) before--
    if ((quote - before) % 2 === 1) return quote + 1
  }
}

function passNumber(text: string, at: number): number {
  const end = endOfNumber(text, at)
  // An integer of up to 15 digits can be written in only one way, except zero with a sign.
  const plain = end < 0
  const stop = plain ? -end : end
  if (plain && stop - at < 16 && !(text.charCodeAt(at) === 45 && text.charCodeAt(at + 1) === 48)) {
    return stop
  }
  const source = text.slice(at, stop)
  return String(Number(source)) === source ? stop : MISMATCH
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
