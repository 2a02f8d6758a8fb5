/**
 * Makes a line of a log safe: each character that could command a terminal, hide something or end the line is
 * written as `\u{…}`, even where ordinary text needs it, such as inside an emoji. Smaller than `safeText`,
 * for code that browsers load.
 */
export function safeLogLine(text: string): string {
  return text.replace(UNSAFE(), (character) =>
    Array.from(character, (one) => `\\u{${one.codePointAt(0)!.toString(16)}}`).join(''),
  )
}

/** How text is made safe. */
interface SafeTextOptions {
  /** Makes one line: line breaks and tabs become visible too. Default: they stay. */
  readonly isLine?: boolean
  /** Cuts the text to this many characters and says how many more there are. Default: no cut. */
  readonly maxChars?: number
}

/**
 * Makes text from outside safe to show to a person. A model, a tool or a web page may send characters that
 * command a terminal, hide words, reverse their order or push them off the screen, so that a person approves
 * something else than what runs. Such characters are written as `\u{…}`, long runs of them and of white
 * space as a count. Text of ordinary languages stays as it is, with the invisible characters that emoji and
 * some scripts need.
 */
export function safeText(text: string, { isLine = false, maxChars }: SafeTextOptions = {}): string {
  const visible = text
    .replace(BLANKS(), (run) =>
      isTooLong(run, isLine) ? ` [${run.length} blank characters] ` : run,
    )
    .replace(UNSAFE(), (character, offset: number, whole: string) => {
      if (!isLine) {
        if (character === '\n' || character === '\t') return character
        if (character === '\r' && whole[offset + 1] === '\n') return ''
      }
      if (isOrdinary(character, offset, whole)) return character
      return `\\u{${character.codePointAt(0)!.toString(16)}}`
    })
    .replace(ESCAPES, (run) => {
      const all = run.split('}')
      if (all.length < 10) return run
      return `${all.slice(0, 4).join('}')}} [${all.length - 5} more hidden characters]`
    })
  return cut(visible, maxChars)
}

/**
 * Makes a value at its first use. V8 builds the character sets of Unicode properties (`\p{…}`) as soon as it parses a
 * regular expression literal; as literals, the expressions of this file would add 4 ms to every import.
 */
function once<T>(make: () => T): () => T {
  let value: T | undefined
  return () => (value ??= make())
}

/**
 * Control characters (the escape character that begins a terminal's commands, and the C1 set), line and
 * paragraph separators, characters that are invisible or change the direction of text, halves of surrogate
 * pairs, and everything beyond eight marks on one letter, which would cover other lines. The signs excluded
 * after `(?!` are visible, although Unicode counts them among the format characters. The flag of a region,
 * which consists of hidden characters, is found as a whole.
 */
const UNSAFE = /* @__PURE__ */ once(() =>
  RegExp(
    String.raw`\u{1f3f4}[\u{e0030}-\u{e007a}]{1,6}\u{e007f}|(?![\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{DI}]|(?<=\p{M}{8})\p{M}`,
    'gu',
  ),
)

/** Runs of white space that may be too long; the Braille blank looks like a space. */
const BLANKS = /* @__PURE__ */ once(() => RegExp(String.raw`[\p{Zs}\s\u2800]{9,}`, 'gu'))

const ESCAPES = /(?:\\u\{[\da-f]+\})+/g

/**
 * True for white space that would push text off the screen: more than 200 characters (two and a half lines of
 * a terminal) or 20 lines. Where the text must stay in one line, every run of nine or more.
 */
function isTooLong(run: string, isLine: boolean): boolean {
  return isLine || run.length > 200 || run.split('\n').length > 20
}

/**
 * The places where an invisible character belongs to ordinary text: joiners between emoji and within scripts
 * that need them, the style of an emoji, keycaps, variants of ideographs and signs, flags of regions.
 */
const ORDINARY = /* @__PURE__ */ once(
  (): readonly (readonly [character: RegExp, before: RegExp, after: RegExp])[] => [
    [
      /\u200d/,
      RegExp(String.raw`\p{Extended_Pictographic}(?:\p{Emoji_Modifier}|\ufe0f)?$`, 'u'),
      RegExp(String.raw`^\p{Extended_Pictographic}`, 'u'),
    ],
    [/[\ufe0e\ufe0f]/, RegExp(String.raw`\p{Extended_Pictographic}$`, 'u'), /^/],
    [/\ufe0f/, /[\d#*]$/, /^\u20e3/],
    [
      /[\u200c\u200d]/,
      RegExp(
        String.raw`(?=\p{L})[\p{sc=Arab}\p{sc=Syrc}\p{sc=Mong}\p{sc=Nkoo}\p{sc=Deva}\p{sc=Beng}\p{sc=Guru}\p{sc=Gujr}\p{sc=Orya}\p{sc=Taml}\p{sc=Telu}\p{sc=Knda}\p{sc=Mlym}\p{sc=Sinh}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}](?:(?!\p{DI})\p{M}){0,4}$`,
        'u',
      ),
      /^/,
    ],
    [/[\ufe00-\ufe02\u{e0100}-\u{e01ef}]/u, RegExp(String.raw`\p{sc=Han}$`, 'u'), /^/],
    [/[\u180b-\u180d\u180f]/, RegExp(String.raw`(?=\p{L})\p{sc=Mong}$`, 'u'), /^/],
    [/\ufe00/, RegExp(String.raw`[\p{Sm}\p{sc=Mymr}]$`, 'u'), /^/],
    [/^\u{1f3f4}/u, /$/, /^/],
  ],
)

/** The number of code units next to a character that `ORDINARY` looks at. */
const CONTEXT_UNITS = 16

function isOrdinary(character: string, offset: number, whole: string): boolean {
  const end = offset + character.length
  const before = whole.slice(Math.max(offset - CONTEXT_UNITS, 0), offset)
  const after = whole.slice(end, end + 2)
  return ORDINARY().some(
    ([pattern, left, right]) => pattern.test(character) && left.test(before) && right.test(after),
  )
}

function cut(text: string, maxChars = Infinity): string {
  if (text.length <= maxChars) return text
  // A surrogate pair is not cut in half.
  const end = /[\ud800-\udbff]/.test(text[maxChars - 1] ?? '') ? maxChars - 1 : maxChars
  return `${text.slice(0, end)}… [${text.length - end} more characters]`
}

/**
 * Makes text that arrives in pieces safe, such as the answer of a model. The end of a piece is held back if
 * only the next piece shows what it is: half of a character, an emoji that may continue, or white space.
 */
export class SafeTextStream {
  /** The last character that was returned; whether the first character of the next piece is safe depends on it. */
  #before = ''
  #held = ''

  /** Returns the safe form of the text so far, without an end that the next piece may change. */
  push(text: string): string {
    const all = this.#held + text
    const end = all.length > MAX_HELD ? all.length : uncertainFrom(all)
    this.#held = all.slice(end)
    return this.#emit(all.slice(0, end))
  }

  /** Returns the safe form of the text that was held back. A later `push` begins a new text. */
  end(): string {
    const rest = this.#emit(this.#held)
    this.#held = this.#before = ''
    return rest
  }

  #emit(text: string): string {
    if (text === '') return ''
    const safe = safeText(this.#before + text).slice(this.#before.length)
    this.#before = CERTAIN().exec(text)?.[0] ?? ''
    return safe
  }
}

/** The most characters that are held back, e.g. of endless spaces; beyond that, all text is returned. */
const MAX_HELD = 4096

/** Returns the index from which the rest of the text may get another meaning through the next piece. */
function uncertainFrom(text: string): number {
  let start = text.length
  for (;;) {
    const isPair = start > 1 && text.codePointAt(start - 2)! > 0xffff
    const before = start - (isPair ? 2 : 1)
    if (before < 0 || !UNCERTAIN().test(text.slice(before, start))) return start
    start = before
  }
}

const UNCERTAIN = /* @__PURE__ */ once(() =>
  RegExp(
    String.raw`[\s\u2800\p{Zs}\p{M}\p{Cf}\p{DI}\p{Extended_Pictographic}\p{Emoji_Modifier}\p{Cs}\d#*]`,
    'u',
  ),
)

/** Matches a last letter, digit, punctuation mark or symbol, which `safeText` always returns unchanged. */
const CERTAIN = /* @__PURE__ */ once(() => RegExp(String.raw`[\p{L}\p{N}\p{P}\p{S}]$`, 'u'))

/**
 * Writes a value as JSON that is safe to show and has the same value when it is read again: the characters
 * that `safeText` makes visible are written as JSON escapes.
 */
export function safeJson(value: unknown): string {
  return escapeJson(JSON.stringify(value))
}

/** Makes JSON text safe to show, without changing its value; line breaks between values stay. */
export function escapeJson(json: string): string {
  return json.replace(UNSAFE(), (character, offset: number, whole: string) => {
    if (character === '\n' || isOrdinary(character, offset, whole)) return character
    const units = Array.from({ length: character.length }, (_, i) => character.charCodeAt(i))
    return units.map((unit) => `\\u${unit.toString(16).padStart(4, '0')}`).join('')
  })
}

/** A line of this length is seen whole on any screen. */
const SHORT_CHARS = 120
const MAX_NAME_CHARS = 60
const MAX_VALUE_CHARS = 200
const MAX_NAMES = 100

/**
 * Describes a tool call in one line for the person who decides about it. No argument can hide: if the line
 * is long, the names of all arguments come first, and each value is cut.
 */
export function callText(toolName: string, args: unknown): string {
  const name = safeText(toolName, { isLine: true, maxChars: MAX_NAME_CHARS })
  const json = safeText(JSON.stringify(args) ?? 'null', { isLine: true })
  if (json.length <= SHORT_CHARS || !json.startsWith('{'))
    return `${name} ${cut(json, MAX_VALUE_CHARS)}`
  const all = Object.entries(args as object) // its JSON begins with a brace
  const entries = all.slice(0, MAX_NAMES)
  const more = all.length - entries.length
  const names = entries.map(([key]) => nameText(key))
  if (more > 0) names.push(`${more} more`)
  const values = entries.map(([key, value]) => {
    const text = safeText(JSON.stringify(value) ?? 'null', {
      isLine: true,
      maxChars: MAX_VALUE_CHARS,
    })
    return `${nameText(key)}: ${text}`
  })
  return `${name} (${names.join(', ')}) {${values.join(', ')}}`
}

const WORD = /* @__PURE__ */ once(() => RegExp(String.raw`^[\p{L}\p{N}_-]+$`, 'u'))

/** A name that is not one word is quoted, so that it cannot look like several. */
function nameText(key: string): string {
  const visible = WORD().test(key) ? key : JSON.stringify(key)
  return safeText(visible, { isLine: true, maxChars: MAX_NAME_CHARS })
}
