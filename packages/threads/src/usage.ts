import { addDecimals } from './stats-decimal.ts'
import type { Usage } from './types.ts'

/**
 * Adds usages the way Pydantic AI does: every counter, the nested `details`, and `cost` as exact decimal text. Undefined
 * when no counter was set at all.
 */
export function sumUsage(usages: Iterable<Usage | null | undefined>): Usage | undefined {
  const sum: { [key: string]: unknown } = {}
  const details: { [key: string]: number } = {}
  let cost: string | undefined
  let reported = false
  for (const usage of usages) {
    if (typeof usage !== 'object' || usage === null) continue
    for (const [key, value] of Object.entries(usage)) {
      if (typeof value === 'number' && key !== 'cost') {
        sum[key] = ((sum[key] as number | undefined) ?? 0) + value
        if (value !== 0) reported = true
      }
    }
    addDetails(details, usage.details)
    const price = costText(usage.cost)
    if (price !== undefined) {
      cost = cost === undefined ? price : addDecimals(cost, price)
      reported = true
    }
  }
  if (!reported) return undefined
  if (Object.keys(details).length > 0) sum['details'] = details
  if (cost !== undefined) sum['cost'] = cost
  return sum
}

function addDetails(sum: { [key: string]: number }, details: unknown): void {
  if (typeof details !== 'object' || details === null) return
  for (const [key, value] of Object.entries(details)) {
    if (typeof value === 'number') sum[key] = (Object.hasOwn(sum, key) ? sum[key]! : 0) + value
  }
}

/** What can be added; other text in `cost` is nobody's price and is left out of the sum. */
const DECIMAL = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?$/

function costText(cost: unknown): string | undefined {
  if (typeof cost !== 'string' && typeof cost !== 'number') return undefined
  return DECIMAL.test(String(cost)) ? String(cost) : undefined
}
