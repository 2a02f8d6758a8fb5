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
let recorded = false

/** False until the first note of the process; lets writers skip the search. */
export function hasJsonNotes(): boolean {
  return recorded
}

export function jsonNotesOf(holder: object): JsonNotes | undefined {
  return recorded ? notes.get(holder) : undefined
}

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
