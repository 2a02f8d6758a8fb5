/** The pairs of units that are told apart; others share a place, which costs time and nothing else. */
const PLACES = 1 << 14

/**
 * A fast look whether one of some patterns may occur in a text (Wu and Manber): it skips ahead by what a
 * pair of units allows, so that it reads a part of the text only. True may be wrong, false never is.
 */
export function quickSearch(patterns: Iterable<string>): (text: string) => boolean {
  const list = [...patterns]
  const length = Math.min(...list.map((pattern) => pattern.length))
  if (length < 2) return () => true
  const skips = new Uint16Array(PLACES).fill(Math.min(length - 1, 0xffff))
  const endings = new Map<number, Set<string>>()
  for (const pattern of list) {
    for (let i = 1; i < length; i++) {
      const place = placeOf(pattern.charCodeAt(i - 1), pattern.charCodeAt(i))
      skips[place] = Math.min(skips[place]!, length - 1 - i)
    }
    const place = placeOf(pattern.charCodeAt(length - 2), pattern.charCodeAt(length - 1))
    const known = endings.get(place)
    if (known) known.add(pattern.slice(0, length))
    else endings.set(place, new Set([pattern.slice(0, length)]))
  }

  return (text) => {
    // A text made for it would be compared again and again; then the answer is left to the reader.
    let patience = text.length + 1000
    let at = length - 1
    while (at < text.length) {
      const place = placeOf(text.charCodeAt(at - 1), text.charCodeAt(at))
      const skip = skips[place]!
      if (skip > 0) at += skip
      else {
        const beginnings = endings.get(place)!
        patience -= length
        if (patience < 0 || beginnings.has(text.slice(at - length + 1, at + 1))) return true
        at++
      }
    }
    return false
  }
}

function placeOf(first: number, second: number): number {
  return ((first << 7) ^ second) & (PLACES - 1)
}
