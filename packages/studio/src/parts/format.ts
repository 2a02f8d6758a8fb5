import { safeText } from '@skein/base/safe-text'

/** Makes text from outside safe to show in one line. */
export function line(text: string, maxChars = 200): string {
  // Cut first, because `safeText` checks every character, and a line of a million characters is never shown in full.
  const start = text.length > maxChars * 4 ? text.slice(0, maxChars * 4) : text
  const shown = safeText(start, { isLine: true, maxChars })
  return start === text
    ? shown
    : shown.replace(/… \[\d+ more characters\]$/, '') + `… [${text.length} characters]`
}

/** A length of time in words that fit a list: `now`, `3 min`, `2 h`, `5 d`. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 10) return 'now'
  if (seconds < 60) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  if (minutes < 60) return `${minutes} min`
  const hours = Math.round(minutes / 60)
  return hours < 48 ? `${hours} h` : `${Math.round(hours / 24)} d`
}

/** The time of day: `14:03:59`. Formatted by hand, which is fast, because long lists show many times. */
export function clockText(time: string | number): string {
  const date = new Date(time)
  return [date.getHours(), date.getMinutes(), date.getSeconds()]
    .map((part) => String(part).padStart(2, '0'))
    .join(':')
}

let dates: Intl.DateTimeFormat | undefined

/** Date and time in the format of the person's system. */
export function dateText(time: string | number): string {
  dates ??= new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' })
  return dates.format(new Date(time))
}

/** A duration: `6 ms`, `0.5 s`, `3 min 20 s`. */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return `${minutes} min ${Math.round((ms % 60_000) / 1000)} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** A count: `359`, `12.4k`, `3.1M`. */
export function countText(count: number): string {
  if (count < 10_000) return String(count)
  return count < 1_000_000 ? `${(count / 1000).toFixed(1)}k` : `${(count / 1_000_000).toFixed(1)}M`
}

/** A cost in US dollars. An unknown cost is shown as the word `unknown`, never as 0. */
export function money(costUsd: number | null | undefined): string {
  if (costUsd === null || costUsd === undefined) return 'unknown'
  if (costUsd === 0) return '$0'
  return costUsd < 0.01 ? `$${costUsd.toFixed(4)}` : `$${costUsd.toFixed(2)}`
}

/** A size: `812 B`, `14 kB`, `2.4 MB`. */
export function bytes(count: number): string {
  if (count < 1000) return `${count} B`
  return count < 1_000_000
    ? `${Math.round(count / 1000)} kB`
    : `${(count / 1_000_000).toFixed(1)} MB`
}

/** `1 thread`, `2 threads`. */
export function plural(count: number, word: string, words = `${word}s`): string {
  return `${count} ${count === 1 ? word : words}`
}
