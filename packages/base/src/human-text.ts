/**
 * Control characters (including the escape character that begins terminal sequences), line separators,
 * invisible characters, characters that reverse the direction of text, and halves of surrogate pairs.
 */
const UNSAFE =
  /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]/gu

/**
 * Makes text from outside safe to show to a person. A model, a tool or a web page may send characters that
 * move a terminal's cursor, hide words or reverse their order, so that a person approves something else than
 * what runs. Such characters are written as `\u{…}`; line breaks and tabs stay, unless `isLine` asks for a
 * single line.
 */
export function displayText(text: string, options: { readonly isLine?: boolean } = {}): string {
  return text.replace(UNSAFE, (character) => {
    if (!options.isLine && (character === '\n' || character === '\t')) return character
    return `\\u{${character.codePointAt(0)!.toString(16)}}`
  })
}

/**
 * Returns the known word that is closest to a misspelled one, for "Did you mean …?". Upper and lower case are
 * treated as equal. Returns undefined when every known word differs by more than `maxEdits` letters; the
 * default is a third of the word's length.
 */
export function closest(
  word: string,
  known: Iterable<string>,
  maxEdits: number = Math.ceil(word.length / 3),
): string | undefined {
  let best: string | undefined
  let fewest = maxEdits + 1
  for (const candidate of known) {
    const edits = editDistance(word.toLowerCase(), candidate.toLowerCase())
    if (edits >= fewest) continue
    best = candidate
    fewest = edits
  }
  return best
}

/**
 * Computes the Levenshtein distance: how many letters must be changed, added or removed to turn one word into
 * the other.
 */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (let i = 1; i <= from.length; i++) {
    const next = [i]
    for (let j = 1; j <= to.length; j++) {
      const change = row[j - 1]! + (from[i - 1] === to[j - 1] ? 0 : 1)
      next.push(Math.min(change, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[to.length]!
}
