import { seededRandom, type Random } from '@skein/base'

/** Choices that one seed decides. */
export interface Chance {
  readonly random: Random
  /** From 0 up to, not including, `max`. */
  below(max: number): number
  /** From `min` to `max`, both included. */
  between(min: number, max: number): number
  happens(probability: number): boolean
  pick<T>(list: readonly T[]): T
}

export function chanceOf(seed: number): Chance {
  const random = seededRandom(seed)
  const below = (max: number) => Math.floor(random() * max)
  return {
    random,
    below,
    between: (min, max) => min + below(max - min + 1),
    happens: (probability) => random() < probability,
    pick: (list) => list[below(list.length)]!,
  }
}
