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
