import { keepJsonText, numberText } from '../json/json-stringify.ts'
import { joinPointer } from '../issue.ts'
import { type KeyShape, shapeAt, shapeBelow, threadShape } from './protocol-keys.ts'
import type { Thread } from './thread.ts'

/** Settings of `redactThread`. */
export interface RedactOptions {
  /**
   * Texts to remove everywhere: from text, arguments, results, numbers and names of fields, except the names that
   * the protocol defines. Empty texts are ignored.
   */
  readonly secrets?: readonly string[]
  /** Patterns to remove everywhere, such as card numbers. */
  readonly patterns?: readonly RegExp[]
  /** Whole values to remove, given by JSON pointers or by a function of pointer and value. */
  readonly remove?: readonly string[] | ((pointer: string, value: unknown) => boolean)
  /** The text that replaces removed data. Default `[redacted]`. */
  readonly replacement?: string
}

/** The result of `redactThread`. */
export interface Redaction {
  readonly thread: Thread
  /** JSON pointers to the places where something was removed. */
  readonly redacted: readonly string[]
}

/**
 * Matches `pointer=value` of the protocol's own words, versions, times and counts, which are redacted only if
 * `remove` names them. Fields of the same names inside application data do not match, nor do values that are no
 * single word, number or time.
 */
const STRUCTURE = new RegExp(
  '^((/version' +
    // Times of the thread, an agent, a turn and its interruption, e.g. `created_at`.
    '|(/agents/[^/]+|/turns/\\d+(/interruption)?)?/[a-z]+ed_at' +
    // Of a turn or a message: counts, times of system prompts, and values kept from Pydantic AI.
    '|/turns/\\d+(/messages/\\d+)?(/(total_)?usage/[^=]+|/system_prompts/\\d+/at|/pydantic_ai/verbatim/\\d+' +
    // Of a turn, a message or a part: words, times and sizes.
    '|(/parts/\\d+)?/(timestamp|turn_type|message_type|part_kind|status|outcome|finish_reason|speaker' +
    '|([^=]+/)?content_ref/size_bytes)))' +
    // The values of all these.
    '=([a-z_-]+|[\\d.,:TZ+-]+)' +
    // The kinds of contents, with the kinds that there are.
    '|/turns/[^=]+/parts/\\d+/(content(/\\d+)?|audio)/kind=(binary|[a-z]+-(url|content|file|point)))$',
)

/**
 * Returns a copy of the thread without the secrets. The thread stays valid: an id is redacted in the same way
 * everywhere, so calls and returns still match, and structural fields and the protocol's own keys are left alone. Unchanged values are
 * shared with the original.
 */
export function redactThread(thread: Thread, options: RedactOptions): Redaction {
  const redactor = new Redactor(options)
  const value = redactor.object(thread, '', threadShape) as Thread
  return { thread: value, redacted: redactor.redacted }
}

class Redactor {
  readonly redacted: string[] = []
  readonly #replacement: string
  readonly #pattern: RegExp | undefined
  readonly #isRemoved: (pointer: string, value: unknown) => boolean

  constructor({
    secrets = [],
    patterns = [],
    remove = [],
    replacement = '[redacted]',
  }: RedactOptions) {
    this.#replacement = replacement
    this.#pattern = patternOf(secrets, patterns)
    const pointers = new Set(typeof remove === 'function' ? [] : remove)
    this.#isRemoved = typeof remove === 'function' ? remove : (pointer) => pointers.has(pointer)
  }

  #text(text: string, pointer: string): string {
    if (!this.#pattern) return text
    const clean = text.replace(this.#pattern, () => this.#replacement)
    if (clean !== text) this.redacted.push(pointer)
    return clean
  }

  /** Returns the value at `holder[key]`, whose pointer is `place`, without the secrets. */
  #value(holder: object, key: string | number, place: string, shape: KeyShape): unknown {
    const value = (holder as { readonly [key: string | number]: unknown })[key]
    if (this.#isRemoved(place, value)) {
      this.redacted.push(place)
      return this.#replacement
    }
    if (Array.isArray(value)) return this.#list(value, place, shape)
    if (typeof value === 'object' && value !== null) return this.object(value, place, shape)
    if (typeof value !== 'string' && typeof value !== 'number') return value
    if (STRUCTURE.test(`${place}=${value}`)) return value
    // A number is searched as it was written and as JavaScript writes it.
    for (const text of new Set([numberText(holder, key) ?? String(value), String(value)])) {
      const clean = this.#text(text, place)
      if (clean !== text) return clean
    }
    return value
  }

  #list(list: readonly unknown[], pointer: string, shape: KeyShape): unknown {
    const copy = list.map((_, index) =>
      this.#value(list, index, joinPointer(pointer, index), shape),
    )
    return copy.every((item, index) => item === list[index]) ? list : keepJsonText(list, copy)
  }

  object(object: object, pointer: string, shape: KeyShape): unknown {
    let isChanged = false
    const entries = Object.entries(object).map(([key, field]) => {
      const place = joinPointer(pointer, key)
      const own = shapeAt(shape, object, key)
      const name = own === undefined ? this.#text(key, place) : key
      const value = this.#value(object, key, place, own ?? shapeBelow(shape))
      if (name !== key || value !== field) isChanged = true
      return [name, value] as const
    })
    // `fromEntries` also defines the key `__proto__` as data; an assignment would change the prototype.
    return isChanged ? keepJsonText(object, Object.fromEntries(entries)) : object
  }
}

/**
 * Builds one pattern that matches all secrets and patterns. Each secret is searched for as it is and as JSON
 * text would escape it, because arguments are often stored as JSON text.
 */
function patternOf(secrets: readonly string[], patterns: readonly RegExp[]): RegExp | undefined {
  const spellings = secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)])
  const texts = [...new Set(spellings)]
    .filter((text) => text !== '')
    // Longest first, so that a secret that contains a shorter one is replaced as a whole.
    .sort((a, b) => b.length - a.length)
    .map((text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  const sources = [...texts, ...patterns.map((pattern) => `(?:${pattern.source})`)]
  if (sources.length === 0) return undefined
  const flags = new Set([...'g', ...patterns.flatMap((pattern) => [...pattern.flags])])
  return new RegExp(sources.join('|'), [...flags].filter((flag) => flag !== 'y').join(''))
}
