/**
 * Speeds up decoding of streams in which consecutive frames differ only in one text. It remembers the
 * characters before and after that text and recognises further such frames by them, at a fraction of the
 * cost of parsing JSON. The result is the same as with parsing, because equal characters around a string
 * are equal JSON around it.
 */
export class RepeatedFrame {
  /** The key before the text, e.g. `"content":"`. */
  readonly #key: string
  #before = ''
  #after = ''
  #misses = 0

  constructor(field: string) {
    this.#key = `"${field}":"`
  }

  /**
   * Returns the text of a frame that differs from the remembered frame only in its text; undefined if
   * it must be parsed.
   */
  textOf(data: string): string | undefined {
    const before = this.#before
    const end = data.length - this.#after.length
    if (before === '' || end < before.length) return undefined
    if (!data.startsWith(before) || !data.endsWith(this.#after)) return undefined
    const text = data.slice(before.length, end)
    if (!isPlain(text)) return undefined
    this.#misses = 0
    return text
  }

  /**
   * False after `MAX_MISSES` calls of `remember` without a recognised frame in between (e.g. with padded
   * or numbered frames). Callers then stop calling `remember`.
   */
  get isLearning(): boolean {
    return this.#misses < MAX_MISSES
  }

  /** Remembers a parsed frame that contained only this text. Returns false if it cannot be reused. */
  remember(data: string, text: string): boolean {
    this.#misses += 1
    const key = this.#key
    const at = data.indexOf(key)
    // Quotes inside a string are escaped, so a match is a real key. The key must occur exactly once.
    if (at < 0 || data.includes(key, at + 1)) return false
    const start = at + key.length
    const end = start + text.length
    if (!isPlain(text) || !data.startsWith(text, start) || data.charCodeAt(end) !== QUOTE)
      return false
    this.#before = data.slice(0, start)
    this.#after = data.slice(end)
    return true
  }
}

const MAX_MISSES = 16
const QUOTE = 34
const BACKSLASH = 92

/** Checks that no character of the text needs an escape in a JSON string. */
function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 32 || code === QUOTE || code === BACKSLASH) return false
  }
  return true
}
