import { usageError } from '../command-error.ts'

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }

/** `500ms`, `30s`, `5m`, `1h`; a bare number is seconds. */
export function parseDuration(flag: string, text: string): number {
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text) ?? []
  if (amount === undefined)
    throw usageError(`${flag} takes a time, not "${text}".`, 'E.g. 500ms, 30s, 5m.')
  return Number(amount) * UNITS[unit]!
}

/** A time for people. */
export function formatDuration(ms: number): string {
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}
