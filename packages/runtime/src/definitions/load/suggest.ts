/** `; did you mean "x"?` when a known name is close, else the list of few known names, else nothing. */
export function suggest(name: string, known: Iterable<string>): string {
  const names = [...known]
  const limit = Math.ceil(name.length / 3)
  const near = names
    .map((candidate) => ({ candidate, distance: distanceOf(name, candidate, limit) }))
    .filter(({ distance }) => distance <= limit)
    .sort((a, b) => a.distance - b.distance)[0]
  if (near) return `; did you mean "${near.candidate}"?`
  if (names.length === 0 || names.length > 12) return ''
  return `; there ${names.length === 1 ? 'is' : 'are'}: ${names.join(', ')}`
}

/** Edits between two words, ignoring case; anything above the limit is just above it. */
function distanceOf(left: string, right: string, limit: number): number {
  const a = left.toLowerCase()
  const b = right.toLowerCase()
  if (Math.abs(a.length - b.length) > limit) return limit + 1
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const swapped = (row[j - 1] as number) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min(swapped, (row[j] as number) + 1, (next[j - 1] as number) + 1))
    }
    row = next
  }
  return row[b.length] as number
}
