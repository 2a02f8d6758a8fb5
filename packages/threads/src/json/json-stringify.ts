/**
 * Information that is in JSON text but not in a JavaScript value: how a number was written (`18.0`, `-0.0`,
 * 64-bit integers) and the order of integer-like keys. These notes are stored in a separate map, under the
 * object that contains the value, so that values stay plain data. Code that copies an object read from text
 * must copy its notes with `keepJsonText`.
 */
export interface JsonNotes {
  /** The original text of numbers, by key or index. */
  numbers?: Map<string, string>
  /** All keys in source order, when JavaScript would enumerate them differently. */
  keys?: readonly string[]
}

const notes = new WeakMap<object, JsonNotes>()
/**
 * False until the first note of the process is stored. While it is false, writers skip the search for notes.
 */
let hasNotes = false

/** Returns the notes (number text, key order) of an object or array. */
export function jsonNotesOf(holder: object): JsonNotes | undefined {
  return hasNotes ? notes.get(holder) : undefined
}

/** Stores the notes (number text, key order) of an object or array. */
export function setJsonNotes(holder: object, note: JsonNotes): void {
  hasNotes = true
  notes.set(holder, note)
}

/**
 * Copies the number text and key order of `source` to `copy`, and returns `copy`. The notes of nested objects
 * are not copied: nested objects that `copy` shares with `source` still have theirs. `rename` maps source
 * keys to new names.
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

/** Returns how the number at `holder[key]` was written, if that differs from JavaScript's spelling. */
export function numberText(holder: object, key: string | number): string | undefined {
  const text = jsonNotesOf(holder)?.numbers?.get(String(key))
  if (text === undefined) return undefined
  const value = (holder as { [key: string]: unknown })[key]
  return Object.is(Number(text), value) ? text : undefined
}

/**
 * Prints a value that `parseJson` read, with its original number text and key order, or any other plain data.
 */
export function stringifyJson(value: unknown, indent = 0): string {
  const space = ' '.repeat(indent)
  if (!hasNotes) return JSON.stringify(value, undefined, space)
  const objects = new Set<object>()
  if (!findNoted(value, objects)) return JSON.stringify(value, undefined, space)
  return new Writer(objects, space).write(value, '\n')
}

/**
 * Collects the objects that have notes and all objects that contain them; returns whether `value` is one of
 * these.
 */
function findNoted(value: unknown, noted: Set<object>): boolean {
  if (typeof value !== 'object' || value === null) return false
  let hasNote = jsonNotesOf(value) !== undefined
  if (Array.isArray(value)) {
    for (const item of value) hasNote = findNoted(item, noted) || hasNote
  } else {
    for (const key in value) {
      hasNote = findNoted((value as { [key: string]: unknown })[key], noted) || hasNote
    }
  }
  if (hasNote) noted.add(value)
  return hasNote
}

class Writer {
  readonly #noted: ReadonlySet<object>
  readonly #space: string

  constructor(noted: ReadonlySet<object>, space: string) {
    this.#noted = noted
    this.#space = space
  }

  /**
   * Prints a value. `newline` is a line break with the indentation of the place where the value is printed.
   */
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
    const keyNotes = jsonNotesOf(object)?.keys
    // Keys are printed in source order; keys that were added later come last.
    const keys = keyNotes
      ? new Set([...keyNotes.filter((key) => Object.hasOwn(object, key)), ...present])
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
