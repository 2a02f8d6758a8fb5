import { keepJsonText } from '../json/json-stringify.ts'
import { joinPointer } from '../issue.ts'
import type { Thread } from './thread.ts'

/** Settings of `redactThread`. */
export interface RedactOptions {
  /**
   * Texts to remove everywhere: from text, arguments, results and names of fields. Empty texts are ignored.
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
 * Structural fields: their values are protocol names, versions and times. They are redacted only if `remove`
 * names them.
 */
const STRUCTURE: ReadonlySet<string> = new Set(
  (
    'version turn_type message_type part_kind kind status outcome finish_reason timestamp ' +
    'created_at updated_at submitted_at started_at completed_at'
  ).split(' '),
)

/**
 * Returns a copy of the thread without the secrets. The thread stays valid: an id is redacted in the same way
 * everywhere, so calls and returns still match, and structural fields are left alone. Unchanged values are
 * shared with the original.
 */
export function redactThread(thread: Thread, options: RedactOptions): Redaction {
  const redactor = new Redactor(options)
  const value = redactor.value(thread, '') as Thread
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
    const pointers = typeof remove === 'function' ? undefined : new Set(remove)
    this.#isRemoved = typeof remove === 'function' ? remove : (pointer) => pointers!.has(pointer)
  }

  value(value: unknown, pointer: string): unknown {
    if (pointer !== '' && this.#isRemoved(pointer, value)) {
      this.redacted.push(pointer)
      return this.#replacement
    }
    if (typeof value === 'string') return this.#text(value, pointer)
    if (typeof value !== 'object' || value === null) return value
    return Array.isArray(value) ? this.#list(value, pointer) : this.#object(value, pointer)
  }

  #text(text: string, pointer: string): string {
    if (!this.#pattern) return text
    const clean = text.replace(this.#pattern, () => this.#replacement)
    if (clean !== text) this.redacted.push(pointer)
    return clean
  }

  #list(list: readonly unknown[], pointer: string): unknown {
    const copy = list.map((item, index) => this.value(item, joinPointer(pointer, index)))
    return copy.every((item, index) => item === list[index]) ? list : keepJsonText(list, copy)
  }

  #object(object: object, pointer: string): unknown {
    let isChanged = false
    const entries = Object.entries(object).map(([key, field]) => {
      const place = joinPointer(pointer, key)
      const name = this.#text(key, place)
      const isFixed = STRUCTURE.has(key) && !this.#isRemoved(place, field)
      const value = isFixed ? field : this.value(field, place)
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
