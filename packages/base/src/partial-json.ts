type Frame =
  | { readonly kind: 'array'; readonly items: unknown[] }
  | { readonly kind: 'object'; readonly fields: Record<string, unknown>; key: string }

type State =
  | 'value' // a value must come
  | 'first-item' // after `[`: a value or the end
  | 'first-key' // after `{`: a key or the end
  | 'key' // after `,` in an object
  | 'colon'
  | 'next' // after a value in a container: `,` or the end
  | 'string'
  | 'number'
  | 'literal'
  | 'over' // the root is complete
  | 'malformed'

/** Marks that there is no value yet. A symbol, because undefined could be mistaken for a value. */
const nothing = Symbol('nothing')

/**
 * Reads JSON that arrives in pieces. Each character is read once; `value()` returns the value as far as it
 * has arrived and only copies the containers that are still open. Callers must not change that value, because
 * later values share its closed parts.
 *
 * An incomplete string is returned as far as it has arrived; for a number, its longest valid beginning; `t`,
 * `fa` and `nul` are read as `true`, `false` and `null`; a key without a value, a lone `-` and half an escape
 * are left out; malformed text has no value.
 */
export class PartialJson {
  #state: State = 'value'
  readonly #frames: Frame[] = []
  #root: unknown = nothing
  #text = ''
  /** The scalar that is being read: the decoded characters of a string, or the raw text of a number or literal. */
  #scalar = ''
  #isKey = false
  /** An incomplete escape sequence: `\`, `\u`, `\u1` … */
  #escape = ''
  /**
   * The last character code of the string. Stored separately, because reading the end of a long concatenated
   * string copies the string.
   */
  #lastCode = 0
  #snapshot: unknown = nothing

  /** The whole text that was pushed. */
  get text(): string {
    return this.#text
  }

  push(piece: string): void {
    if (piece === '') return
    this.#text += piece
    this.#snapshot = nothing
    let at = 0
    while (at < piece.length && this.#state !== 'malformed') {
      at = this.#state === 'string' ? this.#readString(piece, at) : this.#read(piece, at)
    }
  }

  /**
   * Returns the value as far as it has arrived; undefined when there is none yet, or when the text is not
   * JSON.
   */
  value(): unknown {
    if (this.#state === 'malformed') return undefined
    if (this.#snapshot === nothing) this.#snapshot = this.#take()
    return this.#snapshot
  }

  #take(): unknown {
    let value = this.#root === nothing ? this.#openScalar() : this.#root
    // Copies the open containers from the inside out, each with the unfinished value that it contains.
    for (let depth = this.#frames.length - 1; depth >= 0; depth--) {
      const frame = this.#frames[depth]!
      if (frame.kind === 'array') {
        value = value === nothing ? [...frame.items] : [...frame.items, value]
      } else {
        const fields = { ...frame.fields }
        if (value !== nothing) setField(fields, frame.key, value)
        value = fields
      }
    }
    return value === nothing ? undefined : value
  }

  #openScalar(): unknown {
    if (this.#state === 'string' && !this.#isKey) {
      // A high surrogate at the end is left out: it is only half of a character.
      const isHalf = this.#lastCode >= 0xd800 && this.#lastCode <= 0xdbff
      return isHalf ? this.#scalar.slice(0, -1) : this.#scalar
    }
    if (this.#state === 'number') {
      const longest = numberStart.exec(this.#scalar)
      return longest ? Number(longest[0]) : nothing
    }
    if (this.#state === 'literal') return literals.get(this.#literal() ?? '')
    return nothing
  }

  /** Reads from position `at` on, and returns the position at which the next call continues. */
  #read(piece: string, at: number): number {
    const char = piece[at]!
    if (this.#state === 'number') return this.#readNumber(piece, at)
    if (this.#state === 'literal') return this.#readLiteral(char, at)
    if (char === ' ' || char === '\n' || char === '\r' || char === '\t') return at + 1
    this.#state = this.#step(char)
    // The first character of a number or literal belongs to it, so it is read again in the new state.
    return this.#state === 'number' || this.#state === 'literal' ? at : at + 1
  }

  #step(char: string): State {
    switch (this.#state) {
      case 'value':
        return this.#begin(char)
      case 'first-item':
        return char === ']' ? this.#close() : this.#begin(char)
      case 'first-key':
        return char === '}' ? this.#close() : this.#beginKey(char)
      case 'key':
        return this.#beginKey(char)
      case 'colon':
        return char === ':' ? 'value' : 'malformed'
      case 'next':
        return this.#afterValue(char)
      default:
        return 'malformed' // text after the end
    }
  }

  #begin(char: string): State {
    this.#scalar = ''
    switch (char) {
      case '{':
        this.#frames.push({ kind: 'object', fields: {}, key: '' })
        return 'first-key'
      case '[':
        this.#frames.push({ kind: 'array', items: [] })
        return 'first-item'
      case '"':
        return this.#beginString(false)
      default:
        if (char === '-' || (char >= '0' && char <= '9')) return 'number'
        return char === 't' || char === 'f' || char === 'n' ? 'literal' : 'malformed'
    }
  }

  #beginKey(char: string): State {
    return char === '"' ? this.#beginString(true) : 'malformed'
  }

  #beginString(isKey: boolean): State {
    this.#isKey = isKey
    this.#scalar = ''
    this.#lastCode = 0
    return 'string'
  }

  #afterValue(char: string): State {
    const frame = this.#frames.at(-1)
    if (char === ',') return frame?.kind === 'array' ? 'value' : 'key'
    return char === (frame?.kind === 'array' ? ']' : '}') ? this.#close() : 'malformed'
  }

  #close(): State {
    const frame = this.#frames.pop()!
    return this.#add(frame.kind === 'array' ? frame.items : frame.fields)
  }

  /** Stores a finished value in the container it belongs to, or as the root. */
  #add(value: unknown): State {
    const frame = this.#frames.at(-1)
    if (!frame) {
      this.#root = value
      return 'over'
    }
    if (frame.kind === 'array') frame.items.push(value)
    else setField(frame.fields, frame.key, value)
    return 'next'
  }

  #readString(piece: string, start: number): number {
    if (this.#escape !== '') return this.#readEscape(piece[start]!, start)
    let at = start
    for (; at < piece.length; at++) {
      const code = piece.charCodeAt(at)
      if (code === QUOTE || code === BACKSLASH || code < SPACE) break
    }
    if (at > start) this.#append(piece.slice(start, at))
    const char = piece[at]
    if (char === undefined) return at
    if (char === '\\') this.#escape = char
    else this.#state = char === '"' ? this.#endString() : 'malformed'
    return at + 1
  }

  #endString(): State {
    if (!this.#isKey) return this.#add(this.#scalar)
    const frame = this.#frames.at(-1)
    if (frame?.kind === 'object') frame.key = this.#scalar
    return 'colon'
  }

  #readEscape(char: string, at: number): number {
    const escape = this.#escape + char
    this.#escape = ''
    if (escape.length === 2) {
      const simple = simpleEscapes.get(char)
      if (simple !== undefined) this.#append(simple)
      else if (char === 'u') this.#escape = escape
      else this.#state = 'malformed'
    } else if (!/[0-9a-fA-F]/.test(char)) this.#state = 'malformed'
    else if (escape.length < 6) this.#escape = escape
    else this.#append(String.fromCharCode(Number.parseInt(escape.slice(2), 16)))
    return at + 1
  }

  #append(text: string): void {
    this.#scalar += text
    this.#lastCode = text.charCodeAt(text.length - 1)
  }

  #readNumber(piece: string, start: number): number {
    let at = start
    while (at < piece.length && numberCharacters.includes(piece[at]!)) at++
    this.#scalar += piece.slice(start, at)
    if (at === piece.length) return at
    this.#state = wholeNumber.test(this.#scalar) ? this.#add(Number(this.#scalar)) : 'malformed'
    return at
  }

  #readLiteral(char: string, at: number): number {
    this.#scalar += char
    const literal = this.#literal()
    if (literal === undefined) this.#state = 'malformed'
    else if (literal === this.#scalar) this.#state = this.#add(literals.get(literal))
    return at + 1
  }

  #literal(): string | undefined {
    return [...literals.keys()].find((word) => word.startsWith(this.#scalar))
  }
}

/** Parses the beginning of a JSON text. For a growing text use `PartialJson`. */
export function parsePartialJson(text: string): unknown {
  const parser = new PartialJson()
  parser.push(text)
  return parser.value()
}

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20
const numberCharacters = '+-.0123456789Ee'
const wholeNumber = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/
const numberStart = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/
const literals = new Map<string, unknown>([
  ['true', true],
  ['false', false],
  ['null', null],
])
const simpleEscapes = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
])

/**
 * Sets a field. `__proto__` is skipped, because assigning it would change the prototype; the complete
 * arguments of a tool call leave it out too.
 */
function setField(fields: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') fields[key] = value
}
