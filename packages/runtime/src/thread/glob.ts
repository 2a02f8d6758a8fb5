/**
 * Returns a function that tests whether a path matches a pattern. `*` matches any text and `?` any character
 * within a segment; `**` as a whole segment matches any number of segments. All other characters match
 * themselves. A pattern begins at the root, with or without a leading `/`. No regular expression is used, so
 * no pattern can take exponential time.
 */
export function createGlob(pattern: string): (path: string) => boolean {
  const segments = pattern.normalize('NFC').split('/').filter(Boolean)
  // `/a/**` matches everything below `/a`, but not a file named `/a`.
  if (segments.at(-1) === '**') segments.push('*')
  const patterns = segments.map((segment) =>
    segment === '**' ? ANY : [...segment].map((one) => (one === '*' ? ANY : one)),
  )
  return (path) =>
    matches(path.split('/').filter(Boolean), patterns, (segment, characters) =>
      matches([...segment], characters, (character, one) => one === '?' || one === character),
    )
}

/** The item of a pattern that matches any number of items (`*` or `**`). */
const ANY = Symbol('any')

/**
 * Matches items greedily and backtracks only to the last `ANY`: if an item does not fit, that `ANY`
 * takes one more item. An earlier `ANY` need not be tried again, because the last one can take every
 * item that an earlier one could.
 */
function matches<Item, One>(
  items: readonly Item[],
  pattern: readonly (One | typeof ANY)[],
  fits: (item: Item, one: One) => boolean,
): boolean {
  let at = 0
  let item = 0
  let lastAny = -1
  let covered = 0
  while (item < items.length) {
    const one = pattern[at]
    if (one === ANY) {
      lastAny = at++
      covered = item
    } else if (at < pattern.length && fits(items[item]!, one as One)) {
      // The cast is safe: `one` is not `ANY` and is inside the pattern.
      at++
      item++
    } else if (lastAny >= 0) {
      at = lastAny + 1
      item = ++covered
    } else return false
  }
  while (pattern[at] === ANY) at++
  return at === pattern.length
}
