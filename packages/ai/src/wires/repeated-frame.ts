/** The fields of a frame that may differ from frame to frame without any meaning for its decoder. */
interface IgnoredFields {
  /** Names of fields with a text, e.g. padding or the time. A frame may have each of them once. */
  readonly texts?: readonly string[]
  /**
   * Names of fields with a whole number, e.g. a sequence number, or patterns of names. They may occur several
   * times.
   */
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
  /** The characters before, between and after the values; none until a frame is remembered. */
  #fixed: readonly string[] = []
  #kinds: readonly string[] = []
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
    const kinds = this.#kinds
    let text: string | undefined
    let at = 0
    for (let i = 0; i < fixed.length; i++) {
      const part = fixed[i]!
      // Does the same as `startsWith`, which is ten times slower for long parts (Node 24).
      if (data.slice(at, at + part.length) !== part) return undefined
      at += part.length
      const start = at
      let code = data.charCodeAt(at)
      switch (kinds[i]) {
        case 'number':
          while (code >= ZERO && code <= NINE) code = data.charCodeAt(++at)
          // JSON has no leading zeros.
          if (at === start || (at > start + 1 && data.charCodeAt(start) === ZERO)) return undefined
          break
        case 'spaces':
          while (data.charCodeAt(at) === SPACE) at++
          // The last brace ends the frame.
          return data.length === at + 1 && data[at] === '}' ? this.#hit(text) : undefined
        default: {
          let isEscaped = false
          // After the last character, `charCodeAt` returns NaN, for which the first comparison is false.
          for (; code >= SPACE && code !== QUOTE; code = data.charCodeAt(++at))
            if (code === BACKSLASH) {
              isEscaped = true
              at++
            }
          if (kinds[i] === 'text') text = data.slice(start, at)
          if (!isEscaped) break
          text = kinds[i] === 'text' ? unescape(text!) : undefined
          if (text === undefined) return undefined
        }
      }
    }
    return undefined
  }

  #hit(text: string | undefined): string | undefined {
    if (this.#misses > 0) this.#misses--
    return text
  }

  /**
   * False when `remember` was called so much more often than frames were recognised that the frames of this
   * stream do not repeat. Callers then stop calling `remember`.
   */
  get isLearning(): boolean {
    return this.#misses < MAX_MISSES
  }

  /**
   * Remembers a parsed frame that contained only this text and ignored fields. Returns false if it cannot be
   * reused.
   */
  remember(data: string, said: string): boolean {
    this.#misses += 1
    const { texts = [], numbers = [] } = this.#ignored
    const count = (name: string): number => data.split(`"${name}"`).length - 1
    // Without escapes every quote begins or ends a string, so that a name or text is found by its quotes.
    if (data.includes('\\') || !data.endsWith('}')) return false
    if (count(this.#field) !== 1 || texts.some((name) => count(name) > 1)) return false
    const text = `("(?:${[this.#field, ...texts].join('|')})": ?")[^"]*`
    const number = `("(?:${numbers.join('|') || '(?!)'})": ?)\\d+`
    const values = data.matchAll(new RegExp(`${text}|${number}`, 'g'))
    const fixed: string[] = []
    const kinds: string[] = []
    let at = 0
    for (const { 0: found, 1: textName, 2: numberName = '', index } of values) {
      const start = index + (textName ?? numberName).length
      const isOwn = textName?.startsWith(`"${this.#field}"`)
      fixed.push(data.slice(at, start))
      kinds.push(isOwn ? 'text' : textName === undefined ? 'number' : 'ignored')
      at = index + found.length
      if (isOwn && data.slice(start, at) !== said) return false
    }
    if (!kinds.includes('text')) return false
    // Some vendors pad frames with spaces before the last brace.
    this.#fixed = [...fixed, data.slice(at, -1).trimEnd()]
    this.#kinds = [...kinds, 'spaces']
    return true
  }
}

const MAX_MISSES = 16
const SPACE = 32
const QUOTE = 34
const ZERO = 48
const NINE = 57
const BACKSLASH = 92

/** Returns the text that the inside of a JSON string means; undefined if it is not valid. */
function unescape(inside: string): string | undefined {
  try {
    return JSON.parse(`"${inside}"`) as string
  } catch {
    return undefined
  }
}
