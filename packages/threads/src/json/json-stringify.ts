/**
 * What JSON text says and a JavaScript value cannot: how a number was written (`18.0`, `-0.0`, 64-bit integers) and in
 * which order integer-like keys stood. Kept beside the values, by holder, so that the values stay plain data.
 * Whoever copies an object that came from text passes the notes on with `keepJsonText`.
 */
export interface JsonNotes {
  /** Number text by key or index. */
  numbers?: Map<string, string>
  /** All keys in source order, when JavaScript would enumerate them in another. */
  keys?: readonly string[]
}

const notes = new WeakMap<object, JsonNotes>()
/** False until the first note of the process; lets writers skip the search. */
let recorded = false

function jsonNotesOf(holder: object): JsonNotes | undefined {
  return recorded ? notes.get(holder) : undefined
}

/** Remembers how an object was written. */
export function setJsonNotes(holder: object, note: JsonNotes): void {
  recorded = true
  notes.set(holder, note)
}

/**
 * Passes the number text and key order of `source` on to `copy`, and returns `copy`. Only the object itself is
 * concerned: nested objects that were copied by reference still have theirs. `rename` maps source keys to new names.
 */
export function keepJsonText<T extends object>(
  source: object,
  copy: T,
  rename?: (key: string) => string,
): T {
  const note = jsonNotesOf(source)
  if (note === undefined) return copy
  const renamed: JsonNotes = {}
  const name = rename ?? ((key: string) => key)
  if (note.numbers) {
    renamed.numbers = new Map([...note.numbers].map(([key, text]) => [name(key), text]))
  }
  if (note.keys) renamed.keys = note.keys.map(name)
  setJsonNotes(copy, renamed)
  return copy
}

/** How the number at `holder[key]` was written, if that differs from JavaScript's spelling of it. */
export function numberText(holder: object, key: string | number): string | undefined {
  const text = jsonNotesOf(holder)?.numbers?.get(String(key))
  if (text === undefined) return undefined
  const value = (holder as { [key: string]: unknown })[key]
  return Object.is(Number(text), value) ? text : undefined
}

/** Prints a value that `parseJson` read, or any plain data, with the number text and key order it was read with. */
export function stringifyJson(value: unknown, indent = 0): string {
  const space = ' '.repeat(indent)
  if (!recorded) return JSON.stringify(value, undefined, space)
  const noted = new Set<object>()
  if (!findNoted(value, noted)) return JSON.stringify(value, undefined, space)
  return new Writer(noted, space).write(value, '\n')
}

/** Collects the objects that have notes and all objects around them; says whether `value` is one. */
function findNoted(value: unknown, noted: Set<object>): boolean {
  if (typeof value !== 'object' || value === null) return false
  let found = jsonNotesOf(value) !== undefined
  if (Array.isArray(value)) {
    for (const item of value) found = findNoted(item, noted) || found
  } else {
    for (const key in value) {
      found = findNoted((value as { [key: string]: unknown })[key], noted) || found
    }
  }
  if (found) noted.add(value)
  return found
}

class Writer {
  readonly #noted: ReadonlySet<object>
  readonly #space: string

  constructor(noted: ReadonlySet<object>, space: string) {
    this.#noted = noted
    this.#space = space
  }

  /** `newline` is the line break with the indentation of the place where the value stands. */
  write(value: unknown, newline: string): string {
    if (typeof value !== 'object' || value === null || !this.#noted.has(value)) {
      const text = JSON.stringify(value, undefined, this.#space)
      return newline.length > 1 && this.#space ? text.replaceAll('\n', newline) : text
    }
    const inner = newline + this.#space
    const [open, close] = Array.isArray(value) ? '[]' : '{}'
    const items = Array.isArray(value) ? this.#items(value, inner) : this.#members(value, inner)
    if (items.length === 0) return open! + close!
    if (!this.#space) return open + items.join(',') + close
    return open + inner + items.join(',' + inner) + newline + close
  }

  #items(array: readonly unknown[], newline: string): string[] {
    return array.map(
      (item, index) =>
        numberText(array, index) ?? this.write(item === undefined ? null : item, newline),
    )
  }

  #members(object: object, newline: string): string[] {
    const members: string[] = []
    const colon = this.#space ? ': ' : ':'
    const present = Object.keys(object)
    const noted = jsonNotesOf(object)?.keys
    // Keys in source order; keys added since then come last.
    const keys = noted
      ? new Set([...noted.filter((key) => Object.hasOwn(object, key)), ...present])
      : present
    for (const key of keys) {
      const value = (object as { [key: string]: unknown })[key]
      if (value === undefined) continue
      const text = numberText(object, key) ?? this.write(value, newline)
      members.push(JSON.stringify(key) + colon + text)
    }
    return members
  }
}
