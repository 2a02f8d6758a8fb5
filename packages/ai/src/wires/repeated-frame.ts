/**
 * From token to token, the frames of many vendors differ in one text alone. This remembers what
 * stood around that text and recognises the next such frame by it, at a fraction of the cost of
 * parsing JSON. What it recognises is exact: the same characters around a plain string are the
 * same JSON around it.
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

  /** The text of a frame that differs from the remembered one in its text alone; undefined: parse it. */
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

  /** False once frames have proved not to repeat (padded or numbered ones), so that learning stops. */
  get isLearning(): boolean {
    return this.#misses < MAX_MISSES
  }

  /** Remembers a parsed frame that held nothing but this text. Returns false when it cannot be reused. */
  remember(data: string, text: string): boolean {
    this.#misses += 1
    const key = this.#key
    const at = data.indexOf(key)
    // A quote inside a string is escaped, so a match is a real key; it must occur exactly once.
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

/** True when no character of the text is escaped in a JSON string. */
function isPlain(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code < 32 || code === QUOTE || code === BACKSLASH) return false
  }
  return true
}
