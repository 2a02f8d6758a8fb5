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

const DECIMAL = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,3}))?$/

function costText(cost: unknown): string | undefined {
  if (typeof cost !== 'string' && typeof cost !== 'number') return undefined
  return DECIMAL.test(String(cost)) ? String(cost) : undefined
}

/** Adds two decimal texts without rounding. */
export function addDecimals(left: string, right: string): string {
  const a = toScaled(left)
  const b = toScaled(right)
  const scale = Math.max(a.scale, b.scale)
  const total =
    a.digits * 10n ** BigInt(scale - a.scale) + b.digits * 10n ** BigInt(scale - b.scale)
  const text = (total < 0n ? -total : total).toString().padStart(scale + 1, '0')
  const sign = total < 0n ? '-' : ''
  return scale === 0 ? sign + text : `${sign}${text.slice(0, -scale)}.${text.slice(-scale)}`
}

function toScaled(text: string): { digits: bigint; scale: number } {
  const [, sign, whole, fraction = '', exponent = '0'] = DECIMAL.exec(text) ?? ['', '', '0']
  const scale = fraction.length - Number(exponent)
  const digits = BigInt(`${sign}${whole}${fraction}`)
  return scale >= 0 ? { digits, scale } : { digits: digits * 10n ** BigInt(-scale), scale: 0 }
}
