import { keepJsonText } from '../json/json-stringify.ts'
import { joinPointer } from '../issue.ts'
import type { Thread } from './thread.ts'

/** Settings of `redactThread`. */
export interface RedactOptions {
  /** Texts that must not remain anywhere: in text, arguments, results, names of fields. Empty ones are ignored. */
  readonly secrets?: readonly string[]
  /** Patterns that must not remain, such as card numbers. */
  readonly patterns?: readonly RegExp[]
  /** Whole values to take out, by JSON pointer or by a test of pointer and value. */
  readonly remove?: readonly string[] | ((pointer: string, value: unknown) => boolean)
  /** What stands there instead. Default `[redacted]`. */
  readonly replacement?: string
}

/** What `redactThread` returns. */
export interface Redaction {
  readonly thread: Thread
  /** Where something was taken out. */
  readonly redacted: readonly string[]
}

/** Fields that hold the structure together: their values are names of the protocol, ids and times. */
const STRUCTURE: ReadonlySet<string> = new Set(
  (
    'version turn_type message_type part_kind kind status outcome finish_reason timestamp ' +
    'created_at updated_at submitted_at started_at completed_at'
  ).split(' '),
)

/**
 * A copy without secrets. The thread stays valid: ids are redacted alike everywhere, so calls and returns still match,
 * and structural fields are left alone. What is untouched is shared with the original.
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
    // fromEntries defines each key as data, `__proto__` included.
    return isChanged ? keepJsonText(object, Object.fromEntries(entries)) : object
  }
}

/** Each secret as it is, and as JSON text would spell it: arguments are often kept as text. */
function patternOf(secrets: readonly string[], patterns: readonly RegExp[]): RegExp | undefined {
  const spellings = secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1)])
  const texts = [...new Set(spellings)]
    .filter((text) => text !== '')
    // The longest first, so that a secret that contains another is not cut in two.
    .sort((a, b) => b.length - a.length)
    .map((text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
  const sources = [...texts, ...patterns.map((pattern) => `(?:${pattern.source})`)]
  if (sources.length === 0) return undefined
  const flags = new Set([...'g', ...patterns.flatMap((pattern) => [...pattern.flags])])
  return new RegExp(sources.join('|'), [...flags].filter((flag) => flag !== 'y').join(''))
}
