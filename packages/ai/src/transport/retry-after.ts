import type { ResponseHeaders } from './transport.ts'

/** How long the vendor asks to wait, from whichever header says it; undefined when none does. */
export function retryAfterMs(
  headers: Pick<ResponseHeaders, 'get'>,
  { status, now }: { status: number; now: number },
): number | undefined {
  return (
    positive(parseFloatExact(headers.get('retry-after-ms'))) ??
    positive(parseRetryAfter(headers.get('retry-after'), now)) ??
    (status === 429 ? positive(limitReset(headers, now)) : undefined)
  )
}

/** The vendor's explicit word on retrying. */
export function shouldRetryHeader(headers: Pick<ResponseHeaders, 'get'>): boolean | undefined {
  const value = headers.get('x-should-retry')?.trim().toLowerCase()
  return value === 'true' ? true : value === 'false' ? false : undefined
}

/** Rate-limit headers as the vendor sent them. */
export function rateLimitOf(
  headers: ResponseHeaders,
): Readonly<Record<string, string>> | undefined {
  const found: Record<string, string> = Object.create(null)
  headers.forEach((value, name) => {
    if (/ratelimit|rate-limit|^retry-after/i.test(name)) found[name.toLowerCase()] = value
  })
  return Object.keys(found).length > 0 ? { ...found } : undefined
}

function positive(ms: number | undefined): number | undefined {
  return ms === undefined || !Number.isFinite(ms) ? undefined : Math.max(0, Math.ceil(ms))
}

function parseFloatExact(text: string | null): number | undefined {
  return text !== null && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : undefined
}

/** RFC 9110 §10.2.3: seconds, which vendors also write with a fraction, or a date. */
function parseRetryAfter(text: string | null, now: number): number | undefined {
  if (text === null) return undefined
  const seconds = parseFloatExact(text)
  if (seconds !== undefined) return seconds * 1000
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/** Pairs of what is left and when it is full again, by vendor. */
const limits: readonly (readonly [remaining: string, reset: string])[] = [
  ...['requests', 'tokens'].map(
    (kind) => [`x-ratelimit-remaining-${kind}`, `x-ratelimit-reset-${kind}`] as const,
  ),
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].map(
    (kind) =>
      [`anthropic-ratelimit-${kind}-remaining`, `anthropic-ratelimit-${kind}-reset`] as const,
  ),
  ['x-ratelimit-remaining', 'x-ratelimit-reset'],
  ['ratelimit-remaining', 'ratelimit-reset'],
]

/** The latest reset of the limits that are used up. */
function limitReset(headers: Pick<ResponseHeaders, 'get'>, now: number): number | undefined {
  let latest: number | undefined
  for (const [remaining, reset] of limits) {
    const left = headers.get(remaining)
    if (left !== null && Number(left) > 0) continue
    const wait = parseReset(headers.get(reset), now)
    if (wait !== undefined) latest = Math.max(latest ?? 0, wait)
  }
  return latest
}

/** `6m0s` (OpenAI, Groq), RFC 3339 (Anthropic), seconds, or a moment in seconds or milliseconds. */
export function parseReset(text: string | null, now: number): number | undefined {
  if (text === null || text.trim() === '') return undefined
  const number = parseFloatExact(text)
  if (number !== undefined) {
    if (number > 1e12) return Math.max(0, number - now)
    return number > 1e9 ? Math.max(0, number * 1000 - now) : number * 1000
  }
  const duration = parseDuration(text.trim())
  if (duration !== undefined) return duration
  const date = Date.parse(text)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

const unitMs: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  ms: 1,
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

/** Go's form, e.g. `1h2m3.5s` or `150ms`; also what `google.rpc.RetryInfo` uses. */
export function parseDuration(text: string): number | undefined {
  if (!/^(\d+(\.\d+)?(ns|us|µs|ms|s|m|h|d))+$/.test(text)) return undefined
  let total = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h|d)/g)) {
    total += Number(amount) * unitMs[unit!]!
  }
  return total
}
