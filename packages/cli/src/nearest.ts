/** The known word that was probably meant; undefined when none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const allowed = Math.max(2, Math.floor(word.length / 3))
  return known
    .map((name) => ({ name, distance: distance(word, name) }))
    .filter((found) => found.distance <= allowed)
    .toSorted((a, b) => a.distance - b.distance)[0]?.name
}

/** How many letters have to change, come or go. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(change, row[j]! + 1, next[j - 1]! + 1))
    }
    row = next
  }
  return row[b.length]!
}
