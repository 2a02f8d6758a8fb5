import { messageOf } from '@skein/base'
import { RuntimeError } from './error.ts'

const MINUTE = 60_000
const DAY = 86_400_000
/** The calendar repeats every 400 years, so a date that does not occur within 400 years never occurs. */
const MAX_MONTHS = 400 * 12

/** The values of the five fields of a cron expression, as sets. */
interface CronTimes {
  readonly minutes: ReadonlySet<number>
  readonly hours: ReadonlySet<number>
  readonly days: ReadonlySet<number>
  readonly months: ReadonlySet<number>
  readonly weekdays: ReadonlySet<number>
  /**
   * Whether both a day of the month and a weekday are given. A date then has to match only one of them, as in
   * other cron programs.
   */
  readonly isEitherDay: boolean
}

/**
 * Returns the first minute after a time (ms) that a cron expression matches, in a time zone. Changes to and
 * from summer time are handled as most cron programs do. An expression with one minute and one hour runs once
 * a day: if its time does not exist on that day, at the moment of the clock change; if its time occurs twice,
 * the first time. All other expressions match whatever the clock of the zone shows: a time that does not
 * exist is skipped, and a time that occurs twice matches twice.
 */
export function nextCronTime(cron: string, afterMs: number, timeZone = 'UTC'): number {
  const times = parseCron(cron)
  const isDaily = times.minutes.size === 1 && times.hours.size === 1
  const offsetAt = offsetsOf(timeZone)
  // `minute` is the minute at which the offset was last determined; the search for a match begins at `start`.
  let minute = Math.floor(afterMs / MINUTE) * MINUTE
  let start = minute + MINUTE
  for (;;) {
    const offset = offsetAt(minute)
    const next = nextMatch(cron, times, start + offset) - offset
    const end = Math.min(next, minute + DAY)
    if (offsetAt(end) !== offset) {
      const change = changeBetween(minute, end, offsetAt)
      const isLeftOut = next + offset < change + offsetAt(change)
      if (isDaily && isLeftOut) return change
      minute = start = change
    } else if (next > end) {
      // Nothing matches before `next`, so only a clock change within the day before `next` can matter.
      minute = start = Math.max(end, next - DAY)
    } else if (isDaily && isSecond(next, offset, offsetAt)) {
      minute = next
      start = next + MINUTE
    } else {
      return next
    }
  }
}

/**
 * Returns the first match at or after `start`. Both are times on the clock of the zone, written as if they
 * were UTC.
 */
function nextMatch(cron: string, times: CronTimes, start: number): number {
  const first = new Date(start)
  let year = first.getUTCFullYear()
  let month = first.getUTCMonth()
  for (let i = 0; i <= MAX_MONTHS; i++) {
    const day = times.months.has(month + 1) ? firstInMonth(times, year, month, start) : undefined
    if (day !== undefined) return day
    month = (month + 1) % 12
    if (month === 0) year++
  }
  throw badCron(cron, 'it has no time after the given one')
}

/** Parses a cron expression with five fields, or a word such as `@daily`. Errors name the wrong field. */
export function parseCron(cron: string): CronTimes {
  const line = Object.hasOwn(words, cron.trim()) ? words[cron.trim()]! : cron.trim()
  const texts = line.split(/\s+/)
  if (texts.length !== 5) {
    const names = Object.keys(words).join(', ')
    throw badCron(cron, `it has ${line === '' ? 0 : texts.length} fields instead of 5`, names)
  }
  // The cast is safe, because there is one set for each of the five fields.
  const [minutes, hours, days, months, weekdays] = fields.map((field, index) =>
    parseField(cron, field, texts[index]!),
  ) as [Set<number>, Set<number>, Set<number>, Set<number>, Set<number>]
  if (weekdays.delete(7)) weekdays.add(0)
  const isEitherDay = !texts[2]!.startsWith('*') && !texts[4]!.startsWith('*')
  const firstDay = Math.min(...days)
  if (!isEitherDay && ![...months].some((month) => firstDay <= lengths[month - 1]!)) {
    throw badCron(cron, 'the day of month never comes in these months')
  }
  return { minutes, hours, days, months, weekdays, isEitherDay }
}

const words: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}

interface Field {
  readonly name: string
  readonly min: number
  readonly max: number
  readonly names?: readonly string[]
}

const fields: readonly Field[] = [
  { name: 'minute', min: 0, max: 59 },
  { name: 'hour', min: 0, max: 23 },
  { name: 'day of month', min: 1, max: 31 },
  {
    name: 'month',
    min: 1,
    max: 12,
    names: 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' '),
  },
  { name: 'day of week', min: 0, max: 7, names: 'sun mon tue wed thu fri sat'.split(' ') },
]

function parseField(cron: string, field: Field, text: string): Set<number> {
  const values = new Set<number>()
  for (const part of text.split(',')) {
    const [range = '', step, ...rest] = part.split('/')
    const [from, to] = parseRange(cron, field, range, step !== undefined)
    const by = step === undefined ? 1 : wholeNumber(step)
    if (by === undefined || by < 1 || rest.length > 0) {
      throw badCron(cron, `the step of "${part}" in the field "${field.name}" is no number from 1`)
    }
    for (let value = from; value <= to; value += by) values.add(value)
  }
  return values
}

function parseRange(cron: string, field: Field, text: string, hasStep: boolean): [number, number] {
  // Weekdays are 0 to 7, where 0 and 7 are both Sunday; `*` must include each day only once.
  const last = field.max === 7 ? 6 : field.max
  if (text === '*') return [field.min, last]
  const [first = '', end, ...rest] = text.split('-')
  const from = parseValue(cron, field, first)
  if (end === undefined) return [from, hasStep ? Math.max(from, last) : from]
  let to = parseValue(cron, field, end)
  // In a range such as `fri-sun`, Sunday is the end of the week (7).
  if (field.max === 7 && to === 0 && from > 0) to = 7
  if (rest.length > 0 || to < from) {
    throw badCron(cron, `"${text}" in the field "${field.name}" is no range from low to high`)
  }
  return [from, to]
}

function parseValue(cron: string, field: Field, text: string): number {
  const index = field.names?.indexOf(text.toLowerCase()) ?? -1
  const value = index >= 0 ? index + field.min : wholeNumber(text)
  if (value === undefined || value < field.min || value > field.max) {
    throw badCron(
      cron,
      `"${text}" in the field "${field.name}" is not ${field.min} to ${field.max}`,
    )
  }
  return value
}

function wholeNumber(text: string): number | undefined {
  return /^\d{1,4}$/.test(text) ? Number(text) : undefined
}

/** Days per month, in a leap year. */
const lengths = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

function firstInMonth(
  times: CronTimes,
  year: number,
  month: number,
  start: number,
): number | undefined {
  const monthStart = Date.UTC(year, month, 1)
  const firstDay = Math.max(1, Math.floor((start - monthStart) / DAY) + 1)
  const lastDay = new Date(Date.UTC(year, month + 1, 0)).getUTCDate()
  for (let day = firstDay; day <= lastDay; day++) {
    const midnight = Date.UTC(year, month, day)
    const isMonthDay = times.days.has(day)
    const isWeekday = times.weekdays.has(new Date(midnight).getUTCDay())
    if (!(times.isEitherDay ? isMonthDay || isWeekday : isMonthDay && isWeekday)) continue
    for (let minute = Math.max(0, (start - midnight) / MINUTE); minute < 1440; minute++) {
      if (!times.hours.has(Math.floor(minute / 60))) continue
      if (times.minutes.has(minute % 60)) return midnight + minute * MINUTE
    }
  }
  return undefined
}

type OffsetAt = (time: number) => number

/** Returns a function for how far (ms) the clock of a zone is ahead of UTC. Throws if there is no such zone. */
function offsetsOf(timeZone: string): OffsetAt {
  if (timeZone === 'UTC') return () => 0
  let format: Intl.DateTimeFormat
  try {
    format = new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' })
  } catch (cause) {
    throw new RuntimeError(`There is no time zone "${timeZone}".`, {
      code: 'EFFECT_INVALID',
      hint: 'Use a name of the IANA list, e.g. Europe/Zurich or America/New_York.',
      cause,
    })
  }
  return (time) => {
    const name = format.formatToParts(time).find(({ type }) => type === 'timeZoneName')?.value
    const [, sign, hours, minutes] = /([+-])(\d\d):(\d\d)/.exec(name ?? '') ?? []
    return Number(`${sign ?? ''}1`) * (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * MINUTE
  }
}

/** Returns the minute at which the offset changes between `start` and `end`, where it changes once. */
function changeBetween(start: number, end: number, offsetAt: OffsetAt): number {
  const before = offsetAt(start)
  let [from, to] = [start, end]
  while (to - from > MINUTE) {
    const middle = from + Math.floor((to - from) / MINUTE / 2) * MINUTE
    if (offsetAt(middle) === before) from = middle
    else to = middle
  }
  return to
}

/** Whether the clock showed the same time earlier, because it was set back within the last day. */
function isSecond(time: number, offset: number, offsetAt: OffsetAt): boolean {
  const before = offsetAt(time - DAY)
  return before > offset && offsetAt(time + offset - before) === before
}

function badCron(cron: string, problem: string, words?: string): RuntimeError {
  return new RuntimeError(`The calendar line "${cron}" cannot be used: ${problem}.`, {
    code: 'EFFECT_INVALID',
    hint: `Five fields: minute, hour, day of month, month, day of week${words ? `; or ${words}` : ''}.`,
  })
}

/** Where a source text sets `cron` or `timeZone` to a string. */
const WRITTEN = /\b(cron|timeZone)\s*:\s*(['"`])/g

/**
 * Finds cron expressions that are written in a source text, and returns a problem for each invalid one, e.g.
 * for one that never matches. Expressions that are put together at run time are checked when they are
 * scheduled.
 */
export function cronProblems(source: string): readonly string[] {
  const crons: string[] = []
  const zones: string[] = []
  for (const { 0: start, 1: name, 2: quote = '', index } of source.matchAll(WRITTEN)) {
    const begin = index + start.length
    const text = source.slice(begin, source.indexOf(quote, begin))
    // Text with a line break or `${…}` is no plain string.
    if (!/[\n$]/.test(text)) (name === 'cron' ? crons : zones).push(text)
  }
  return [
    ...crons.map((cron) => () => nextCronTime(cron, Date.now())),
    ...(crons.length > 0 ? zones : []).map((zone) => () => offsetsOf(zone)),
  ].flatMap((attempt) => {
    try {
      attempt()
      return []
    } catch (error) {
      const { hint } = error as { readonly hint?: string }
      return [[messageOf(error), hint].filter(Boolean).join(' ')]
    }
  })
}
