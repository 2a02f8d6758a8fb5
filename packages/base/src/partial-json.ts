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

/** No value yet. Not undefined, so that it cannot be mistaken for one. */
const nothing = Symbol('nothing')

/**
 * Reads JSON that arrives in pieces. Each character is looked at once; `value()` gives what is known
 * so far at the cost of the containers that are still open. Read-only: snapshots share what is closed.
 *
 * A string grows; a number is the longest one that can be read; `t`, `fa`, `nul` count as the literal;
 * a key without a value, a lone `-` and half an escape are left out; malformed text has no value.
 */
export class PartialJson {
  #state: State = 'value'
  readonly #frames: Frame[] = []
  #root: unknown = nothing
  #text = ''
  /** The scalar being read: decoded characters of a string, raw ones of a number or literal. */
  #scalar = ''
  #isKey = false
  /** An escape that is not complete: `\`, `\u`, `\u1` … */
  #escape = ''
  /** Kept apart, because looking at the end of a long string that grew by concatenation copies it. */
  #lastCode = 0
  #snapshot: unknown = nothing

  /** Everything that was pushed. */
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

  /** What is known so far; undefined when that is nothing, or when the text is not JSON. */
  value(): unknown {
    if (this.#state === 'malformed') return undefined
    if (this.#snapshot === nothing) this.#snapshot = this.#take()
    return this.#snapshot
  }

  #take(): unknown {
    let value = this.#root === nothing ? this.#openScalar() : this.#root
    for (let depth = this.#frames.length - 1; depth >= 0; depth--)
      value = withPending(this.#frames[depth]!, value)
    return value === nothing ? undefined : value
  }

  #openScalar(): unknown {
    if (this.#state === 'string' && !this.#isKey)
      // Half of a surrogate pair is not a character yet.
      return isHighSurrogate(this.#lastCode) ? this.#scalar.slice(0, -1) : this.#scalar
    if (this.#state === 'number') return longestNumber(this.#scalar)
    if (this.#state === 'literal') return literals.get(this.#literal() ?? '')
    return nothing
  }

  /** Reads from `at` to where the state changes; answers where that is. */
  #read(piece: string, at: number): number {
    const char = piece[at]!
    if (this.#state === 'number') return this.#readNumber(piece, at)
    if (this.#state === 'literal') return this.#readLiteral(char, at)
    if (char === ' ' || char === '\n' || char === '\r' || char === '\t') return at + 1
    this.#state = this.#step(char)
    // The first character of a number or literal is part of it.
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

  /** Puts a finished value in its place. */
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

/** The value of the beginning of a JSON text. For a growing text use `PartialJson`. */
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

function longestNumber(text: string): unknown {
  const match = numberStart.exec(text)
  return match ? Number(match[0]) : nothing
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff
}

/** A copy of an open container with the value that is being read inside it. */
function withPending(frame: Frame, value: unknown): unknown {
  if (frame.kind === 'array') return value === nothing ? [...frame.items] : [...frame.items, value]
  const fields = { ...frame.fields }
  if (value !== nothing) setField(fields, frame.key, value)
  return fields
}

/** `__proto__` is left out, as it is from the arguments of calls. */
function setField(fields: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') fields[key] = value
}
