/**
 * A test for paths by a pattern: `*` is any text and `?` any character within a segment, `**` as a whole
 * segment is any number of segments. Everything else is itself. A pattern begins at the root, with or
 * without its `/`. There is no regular expression in it, so no pattern can take exponential time.
 */
export function createGlob(pattern: string): (path: string) => boolean {
  const segments = pattern.normalize('NFC').split('/').filter(Boolean)
  // `/a/**` is what is below `/a`, not a file of that name.
  if (segments.at(-1) === '**') segments.push('*')
  const wanted = segments.map((segment) => (segment === '**' ? ANY : [...segment].map(toCharacter)))
  return (path) =>
    matches(path.split('/').filter(Boolean), wanted, (segment, characters) =>
      matches([...segment], characters, (character, one) => one === '?' || one === character),
    )
}

/** Stands for any number of items. */
const ANY = Symbol('any')

function toCharacter(character: string): string | typeof ANY {
  return character === '*' ? ANY : character
}

/**
 * Greedy with one way back: when an item does not fit, only the last `ANY` has to take one more, since
 * whatever an earlier one could take instead, the last one can take too.
 */
function matches<Item, One>(
  items: readonly Item[],
  pattern: readonly (One | typeof ANY)[],
  fits: (item: Item, one: One) => boolean,
): boolean {
  let at = 0
  let item = 0
  let lastAny = -1
  let taken = 0
  while (item < items.length) {
    const one = pattern[at]
    if (one === ANY) {
      lastAny = at++
      taken = item
    } else if (at < pattern.length && fits(items[item]!, one as One)) {
      // Not ANY, and within the pattern, so it is a One.
      at++
      item++
    } else if (lastAny >= 0) {
      at = lastAny + 1
      item = ++taken
    } else return false
  }
  while (pattern[at] === ANY) at++
  return at === pattern.length
}
