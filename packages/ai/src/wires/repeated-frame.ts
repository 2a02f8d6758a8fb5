/** The fields of a frame that may differ from frame to frame without any meaning for its decoder. */
export interface IgnoredFields {
  /** Names of fields with a text, e.g. padding or the time. A frame may have each of them once. */
  readonly texts?: readonly string[]
  /** Names of fields with a whole number, e.g. a sequence number. They may occur several times. */
  readonly numbers?: readonly string[]
}

/**
 * Speeds up decoding of streams in which consecutive frames differ only in one text and in fields that their
 * decoder does not read. It remembers the characters around those values and recognises further such frames
 * by them, at a fraction of the cost of parsing JSON. The result is the same as with parsing, because the
 * values are checked to be one string or one number each, and equal characters around them are equal JSON.
 */
export class RepeatedFrame {
  readonly #field: string
  readonly #ignored: IgnoredFields
  /** The characters before, between and after the values; undefined until a frame is remembered. */
  #fixed: readonly string[] | undefined
  #kinds: readonly ValueKind[] = []
  #misses = 0

  constructor(field: string, ignored: IgnoredFields = {}) {
    this.#field = field
    this.#ignored = ignored
  }

  /**
   * Returns the text of a frame that differs from the remembered frame only in its text and in ignored
   * fields; undefined if it must be parsed.
   */
  textOf(data: string): string | undefined {
    const fixed = this.#fixed
    if (fixed === undefined || !hasAt(data, fixed[0]!, 0)) return undefined
    const kinds = this.#kinds
    let text: string | undefined
    let at = fixed[0]!.length
    for (let i = 0; i < kinds.length; i++) {
      const kind = kinds[i]
      const start = at
      if (kind === TEXT || kind === IGNORED_TEXT) {
        let code = data.charCodeAt(at)
        // The comparison is false for NaN too, which is the code after the last character.
        while (code >= 32 && code !== QUOTE && code !== BACKSLASH) code = data.charCodeAt(++at)
        if (code !== QUOTE) {
          if (code !== BACKSLASH || kind === IGNORED_TEXT) return undefined
          at = endOfString(data, at)
          text = unescape(data.slice(start, at))
          if (text === undefined) return undefined
        } else if (kind === TEXT) text = data.slice(start, at)
      } else if (kind === NUMBER) {
        while (isDigit(data.charCodeAt(at))) at++
        // JSON has no leading zeros.
        if (at === start || (at > start + 1 && data.charCodeAt(start) === ZERO)) return undefined
      } else while (data.charCodeAt(at) === SPACE) at++
      const next = fixed[i + 1]!
      if (!hasAt(data, next, at)) return undefined
      at += next.length
    }
    if (at !== data.length) return undefined
    if (this.#misses > 0) this.#misses--
    return text
  }

  /**
   * False when `remember` was called so much oftener than frames were recognised that the frames of this
   * stream do not repeat. Callers then stop calling `remember`.
   */
  get isLearning(): boolean {
    return this.#misses < MAX_MISSES
  }

  /**
   * Remembers a parsed frame that contained only this text and ignored fields. Returns false if it cannot be
   * reused.
   */
  remember(data: string, text: string): boolean {
    this.#misses += 1
    const values = this.#valuesIn(data, text)
    if (!values) return false
    const fixed: string[] = []
    let at = 0
    for (const { start, end } of values) {
      fixed.push(data.slice(at, start))
      at = end
    }
    fixed.push(data.slice(at))
    // A name or a text with escapes could be another spelling of a name that is looked for.
    if (fixed.some((part) => part.includes('\\'))) return false
    this.#fixed = fixed
    this.#kinds = values.map(({ kind }) => kind)
    return true
  }

  /** Finds the values that may differ, in order; undefined if they cannot be told from the rest. */
  #valuesIn(data: string, text: string): readonly Value[] | undefined {
    const { texts = [], numbers = [] } = this.#ignored
    const found = [textAt(data, this.#field, TEXT)]
    const [own] = found
    if (!own || unescape(data.slice(own.start, own.end)) !== text) return undefined
    for (const name of texts)
      if (data.includes(`"${name}"`)) found.push(textAt(data, name, IGNORED_TEXT))
    const values = found.filter((value) => value !== undefined)
    if (values.length < found.length) return undefined
    for (const name of numbers) values.push(...numbersAt(data, name))
    values.sort((a, b) => a.start - b.start)
    // Some vendors pad frames with spaces before the last brace.
    let end = data.length - 1
    if (data[end] !== '}') return undefined
    while (data.charCodeAt(end - 1) === SPACE) end--
    if (end < values.at(-1)!.end) return undefined
    values.push({ kind: SPACES, start: end, end: data.length - 1 })
    return values
  }
}

const TEXT = 0
const IGNORED_TEXT = 1
const NUMBER = 2
const SPACES = 3
type ValueKind = typeof TEXT | typeof IGNORED_TEXT | typeof NUMBER | typeof SPACES

/** A value in a frame; that of a text is between its quotes. */
interface Value {
  readonly kind: ValueKind
  readonly start: number
  readonly end: number
}

const MAX_MISSES = 16
const SPACE = 32
const QUOTE = 34
const ZERO = 48
const BACKSLASH = 92

/**
 * Finds the text of a field. Quotes inside a string are escaped, so a match is a real name or a whole text.
 * It must occur exactly once.
 */
function textAt(data: string, name: string, kind: ValueKind): Value | undefined {
  const quoted = `"${name}"`
  const at = data.indexOf(quoted)
  if (at < 0 || data.includes(quoted, at + 1)) return undefined
  const start = valueAfter(data, at + quoted.length)
  if (data.charCodeAt(start) !== QUOTE) return undefined
  return { kind, start: start + 1, end: endOfString(data, start + 1) }
}

function numbersAt(data: string, name: string): Value[] {
  const quoted = `"${name}"`
  const values: Value[] = []
  for (let at = data.indexOf(quoted); at >= 0; at = data.indexOf(quoted, at + 1)) {
    const start = valueAfter(data, at + quoted.length)
    let end = start
    while (isDigit(data.charCodeAt(end))) end++
    // Fractions and exponents stay among the fixed characters, as do values of other types.
    if (end > start) values.push({ kind: NUMBER, start, end })
  }
  return values
}

/** Returns the position of the value after a name, with or without a space between; -1 if there is none. */
function valueAfter(data: string, at: number): number {
  if (data[at] !== ':') return -1
  return data.charCodeAt(at + 1) === SPACE ? at + 2 : at + 1
}

/** Returns the position of the quote that ends a string; the length of the data if none does. */
function endOfString(data: string, start: number): number {
  for (let at = start; at < data.length; at++) {
    const code = data.charCodeAt(at)
    if (code === QUOTE) return at
    if (code === BACKSLASH) at++
  }
  return data.length
}

/** Does the same as `data.startsWith(part, at)`, which is ten times slower for long parts (Node 24). */
function hasAt(data: string, part: string, at: number): boolean {
  return data.slice(at, at + part.length) === part
}

/** Returns the text that the inside of a JSON string stands for; undefined if it is not valid. */
function unescape(inside: string): string | undefined {
  try {
    return JSON.parse(`"${inside}"`) as string
  } catch {
    return undefined
  }
}

function isDigit(code: number): boolean {
  return code >= ZERO && code <= 57
}
