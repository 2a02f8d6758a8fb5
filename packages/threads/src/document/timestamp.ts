/**
 * The pattern of an ISO 8601 date and time in extended format: `2025-01-15T10:00`, optional seconds (60 for a
 * leap second) with an optional fraction of any length, then `Z`, an offset (`+02`, `+0200`, `+02:00`) or
 * nothing. Only days that exist in the calendar match.
 */
export const TIMESTAMP_PATTERN: string =
  '^(?:\\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)|02-(?:0[1-9]|1\\d|2[0-8]))' +
  '|(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)' +
  'T(?:[01]\\d|2[0-3]):[0-5]\\d(?::(?:[0-5]\\d|60)(?:[.,]\\d+)?)?' +
  '(?:Z|[+-](?:[01]\\d|2[0-3])(?::?[0-5]\\d)?)?$'

const MINUTE = 60_000_000
const DAY = 24 * 60 * MINUTE

/**
 * Returns the microseconds since 1970 of a timestamp, or NaN when the text is not one. Digits after the sixth
 * are cut off. Text without a zone is read as UTC. `Date` is not used, because it would cut to milliseconds
 * and read text without a zone as local time. (Doubles are exact to the microsecond until the year 2255, and
 * to 32 µs after that.)
 */
export function instantOf(text: string): number {
  if (text.length < 16) return NaN
  const hour = two(text, 11)
  const minute = two(text, 14)
  const days = daysOf(text)
  const legal =
    hour >= 0 &&
    hour <= 23 &&
    minute >= 0 &&
    minute <= 59 &&
    text.charCodeAt(10) === 84 &&
    text.charCodeAt(13) === 58
  if (!legal || days === NO_DAY) return NaN
  const base = days * DAY + (hour * 60 + minute) * MINUTE
  return text.charCodeAt(16) === 58 ? withSeconds(text, base) : withZone(text, 16, base)
}

/** True for a valid timestamp without a time zone. */
export function isZoneless(text: string): boolean {
  const last = text.charCodeAt(text.length - 1)
  return last !== 90 && !/[+-]\d\d(?::?\d\d)?$/.test(text.slice(16))
}

function withSeconds(text: string, base: number): number {
  const seconds = text.length < 19 ? NOT_DIGITS : two(text, 17)
  if (seconds < 0 || seconds > 60) return NaN
  const mark = text.charCodeAt(19)
  if (mark !== 46 && mark !== 44) return withZone(text, 19, base + seconds * 1_000_000)
  let at = 20
  let micros = 0
  let scale = 100_000
  for (let code = text.charCodeAt(at); code >= 48 && code <= 57; code = text.charCodeAt(++at)) {
    micros += (code - 48) * scale
    scale = (scale / 10) | 0
  }
  return at === 20 ? NaN : withZone(text, at, base + seconds * 1_000_000 + micros)
}

function withZone(text: string, at: number, micros: number): number {
  if (at === text.length) return micros
  const sign = text.charCodeAt(at)
  if (sign === 90) return at + 1 === text.length ? micros : NaN
  if (sign !== 43 && sign !== 45) return NaN
  if (at + 3 > text.length) return NaN
  const hours = two(text, at + 1)
  let minutes = 0
  at += 3
  if (at < text.length) {
    if (text.charCodeAt(at) === 58) at++
    if (at + 2 > text.length) return NaN
    minutes = two(text, at)
    at += 2
  }
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59 || at !== text.length) return NaN
  const offset = (hours * 60 + minutes) * MINUTE
  return sign === 43 ? micros - offset : micros + offset
}

const NOT_DIGITS = -1_000_000

/** Returns the number that the two digits at `at` form, or NOT_DIGITS. Both characters must exist. */
function two(text: string, at: number): number {
  const tens = text.charCodeAt(at) - 48
  const ones = text.charCodeAt(at + 1) - 48
  // `>>> 0` turns the negative results of characters before "0" into large numbers, so one comparison is
  // enough.
  return tens >>> 0 > 9 || ones >>> 0 > 9 ? NOT_DIGITS : tens * 10 + ones
}

const NO_DAY = -1e9
/** The last date that was computed, cached because the messages of a thread are mostly from the same day. */
let lastDate = -1
let lastDays = NO_DAY

/** Returns the days from 1970-01-01 to the date at the start of the text, or NO_DAY. */
function daysOf(text: string): number {
  const year = two(text, 0) * 100 + two(text, 2)
  const month = two(text, 5)
  const day = two(text, 8)
  if (text.charCodeAt(4) !== 45 || text.charCodeAt(7) !== 45) return NO_DAY
  if (year < 0 || month < 1 || month > 12 || day < 1 || day > 31) return NO_DAY
  const date = (year << 9) | (month << 5) | day
  if (date !== lastDate) {
    const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
    const isShort = month === 4 || month === 6 || month === 9 || month === 11
    const daysInMonth = month === 2 ? (isLeap ? 29 : 28) : isShort ? 30 : 31
    // `Date.UTC` would read the years 0 to 99 as 1900 to 1999.
    const time = new Date(0).setUTCFullYear(year, month - 1, day)
    lastDays = day > daysInMonth ? NO_DAY : time / 86_400_000
    lastDate = date
  }
  return lastDays
}
