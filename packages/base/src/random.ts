/** Returns a random number from 0 up to, but not including, 1, like `Math.random`. */
export type Random = () => number

/**
 * Creates a repeatable source of random numbers: sfc32 with the state (0, low half of the seed, high half,
 * 1), the first twelve rounds discarded, 32 bits per number. The seed is a whole number. The same seed
 * produces the same numbers on every machine. Not for keys or tokens.
 */
export function seededRandom(seed: number): Random {
  let a = 0
  let b = seed | 0
  let c = Math.floor(seed / 2 ** 32) | 0
  let counter = 1
  const next = (): number => {
    const sum = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return (sum >>> 0) / 2 ** 32
  }
  for (let round = 0; round < 12; round++) next()
  return next
}
