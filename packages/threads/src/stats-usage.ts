import { addDecimals } from './stats-decimal.ts'
import type { Usage } from './types.ts'

/**
 * Adds usage the way Pydantic AI does: every counter by name, also those no type names; `details` key by key; `cost`
 * as exact decimal text. Totals are inclusive (reasoning inside output, cache inside input), so nothing is derived.
 */
export function addUsage(sum: Usage, usage: Usage | null | undefined): Usage {
  if (!usage) return sum
  const total: Record<string, unknown> = { ...sum }
  for (const [name, value] of Object.entries(usage)) {
    if (name === 'cost') total[name] = addCost(total[name], value)
    else if (name === 'details') total[name] = addCounts(total[name], value)
    else if (typeof value === 'number') total[name] = countOf(total[name]) + value
    // A field that is no counter cannot be added: the first one stands.
    else if (!(name in total) && value !== null) total[name] = value
  }
  return total as Usage
}

/** Input plus output: what Pydantic AI calls total tokens. A stored `total_tokens` is never trusted nor rewritten. */
export function totalTokens(usage: Usage): number {
  return countOf(usage.input_tokens) + countOf(usage.output_tokens)
}

function addCost(sum: unknown, value: unknown): unknown {
  if (value === null || value === undefined) return sum ?? null
  if (sum === null || sum === undefined) return String(value)
  return addDecimals(String(sum), String(value))
}

function addCounts(sum: unknown, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return sum ?? value
  const total: Record<string, unknown> = { ...(sum as Record<string, unknown> | null | undefined) }
  for (const [name, count] of Object.entries(value)) {
    total[name] = typeof count === 'number' ? countOf(total[name]) + count : (total[name] ?? count)
  }
  return total
}

function countOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}
