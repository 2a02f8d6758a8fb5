const UUID = /^(?:urn:uuid:)?[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i
const BARE_UUID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/
const DATE_TIME =
  /^(\d{4})-(\d\d)-(\d\d)[t\s](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:z|([+-])(\d\d)(?::?(\d\d))?)$/i
// Upper-case T and Z, or an offset with its colon: what every reader of RFC 3339 takes.
const STRICT_DATE_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/
const DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** JSON Schema format `uuid` as common validators assert it: any case, with or without `urn:uuid:`. */
export function isUuid(text: string): boolean {
  return UUID.test(text)
}

/** The one form this package writes: lower case, bare. */
export function isBareUuid(text: string): boolean {
  return BARE_UUID.test(text)
}

/** JSON Schema format `date-time` as common validators assert it: also with a space for the T. */
export function isDateTime(text: string): boolean {
  const match = DATE_TIME.exec(text)
  if (!match) return false
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as SixNumbers
  if (!isDay(year, month, day)) return false
  const sign = match[7] === '-' ? -1 : 1
  const offset = { hours: Number(match[8] ?? 0), minutes: Number(match[9] ?? 0) }
  if (offset.hours > 23 || offset.minutes > 59) return false
  if (hour <= 23 && minute <= 59 && second <= 59) return true
  // A leap second stands at 23:59:60 UTC, wherever that is on the local clock.
  const utcMinute = minute - offset.minutes * sign
  const utcHour = hour - offset.hours * sign - (utcMinute < 0 ? 1 : 0)
  const isLastMinute = utcMinute === 59 || utcMinute === -1
  return second === 60 && isLastMinute && (utcHour === 23 || utcHour === -1)
}

type SixNumbers = [number, number, number, number, number, number]

/** RFC 3339 in its strict form, with offset. */
export function isStrictDateTime(text: string): boolean {
  return STRICT_DATE_TIME.test(text) && isDateTime(text)
}

/** A W3C trace id: 32 lower-case hex digits, not all zero. */
export function isTraceId(text: string): boolean {
  return /^[0-9a-f]{32}$/.test(text) && !/^0+$/.test(text)
}

function isDay(year: number, month: number, day: number): boolean {
  const isLeapYear = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  const days = month === 2 && isLeapYear ? 29 : DAYS[month - 1]
  return days !== undefined && day >= 1 && day <= days
}
