import { safeText } from '@skein/base/safe-text'
import type { Problem } from '@skein/runtime'

/**
 * Indents all lines except the first, so that a text of several lines cannot look like output of the command itself.
 */
export function indented(text: string): string {
  return safeText(text).replaceAll('\n', '\n  ')
}

/** Formats how long ago something was, in one unit. */
export function timeAgo(at: string, now: number = Date.now()): string {
  const seconds = Math.max(Math.round((now - Date.parse(at)) / 1000), 0)
  if (seconds < 60) return `${seconds} s ago`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`
  return `${Math.floor(seconds / 86_400)} d ago`
}

/** Formats a problem of a definition with its file and field. */
export function problemLine({ subject, field, message, file }: Problem): string {
  const place = file === undefined || file === subject ? subject : `${file}: ${subject}`
  return `${place}: ${field === '' ? '' : `${field}: `}${message}`
}

/** Formats a cost in US dollars; null means unknown. */
export function costText(costUsd: number | null): string {
  return costUsd === null ? 'cost unknown' : `cost $${costUsd.toFixed(4)}`
}

/** Formats a duration. */
export function formatDuration(ms: number): string {
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}

/** Returns the message of an error. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
