/** What is said about one contender. */
export interface Summary {
  readonly median: number
  /** Half of all samples lie between these two. */
  readonly low: number
  readonly high: number
  readonly samples: number
}

export function summarise(values: readonly number[]): Summary {
  const sorted = values.toSorted((a, b) => a - b)
  return {
    median: quantile(sorted, 0.5),
    low: quantile(sorted, 0.25),
    high: quantile(sorted, 0.75),
    samples: sorted.length,
  }
}

/** The value below which a share of the sorted samples lies, between neighbours where it falls there. */
function quantile(sorted: readonly number[], share: number): number {
  if (sorted.length === 0) return Number.NaN
  const position = (sorted.length - 1) * share
  const below = Math.floor(position)
  const lower = sorted[below] ?? Number.NaN
  const upper = sorted[below + 1] ?? lower
  return lower + (upper - lower) * (position - below)
}
