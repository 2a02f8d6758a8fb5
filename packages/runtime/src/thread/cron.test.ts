import { Cron } from 'croner'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cronProblems, nextCronTime, parseCron } from '../contract/cron.ts'

const next = (cron: string, after: string) =>
  new Date(nextCronTime(cron, Date.parse(after))).toISOString().replace(':00.000Z', 'Z')

test.each([
  ['* * * * *', '2026-01-01T00:00:00Z', '2026-01-01T00:01Z'],
  ['* * * * *', '2026-01-01T00:00:59.999Z', '2026-01-01T00:01Z'],
  ['*/15 * * * *', '2026-01-01T00:44:10Z', '2026-01-01T00:45Z'],
  ['5/20 * * * *', '2026-01-01T00:26:00Z', '2026-01-01T00:45Z'],
  ['0 9-17/4 * * mon-fri', '2026-01-02T17:00:00Z', '2026-01-05T09:00Z'],
  ['30 4 1,15 * 5', '2026-01-02T04:30:00Z', '2026-01-09T04:30Z'],
  ['30 4 1,15 * 5', '2026-01-09T04:30:00Z', '2026-01-15T04:30Z'],
  ['0 0 * * 7', '2026-01-01T00:00:00Z', '2026-01-04T00:00Z'],
  ['0 0 * * FRI-SUN', '2026-01-03T00:00:00Z', '2026-01-04T00:00Z'],
  ['0 0 31 * *', '2026-01-31T00:00:00Z', '2026-03-31T00:00Z'],
  ['0 0 29 2 *', '2024-02-29T00:00:00Z', '2028-02-29T00:00Z'],
  ['0 0 29 2 *', '2096-02-29T00:00:00Z', '2104-02-29T00:00Z'],
  ['0 0 29 Feb */7', '2032-02-29T00:00:00Z', '2060-02-29T00:00Z'],
  ['0 0 30 2 1', '2026-01-31T00:00:00Z', '2026-02-02T00:00Z'],
  ['@daily', '2026-12-31T00:00:00Z', '2027-01-01T00:00Z'],
  ['@hourly', '2026-12-31T23:00:00Z', '2027-01-01T00:00Z'],
  ['@weekly', '2026-01-01T00:00:00Z', '2026-01-04T00:00Z'],
  ['@monthly', '2026-01-01T00:00:00Z', '2026-02-01T00:00Z'],
  ['@yearly', '2026-01-01T00:00:00Z', '2027-01-01T00:00Z'],
  ['  0   0 1 1 * ', '2026-01-01T00:00:00Z', '2027-01-01T00:00Z'],
])('%s after %s is %s', (cron, after, expected) => {
  expect(next(cron, after)).toBe(expected)
})

test.each([
  ['60 * * * *', 'minute'],
  ['* 24 * * *', 'hour'],
  ['* * 0 * *', 'day of month'],
  ['* * * 13 *', 'month'],
  ['* * * * 8', 'day of week'],
  ['* * * * someday', 'day of week'],
  ['mon * * * *', 'minute'],
  ['*/0 * * * *', 'minute'],
  ['1/2/3 * * * *', 'minute'],
  ['5-1 * * * *', 'minute'],
  ['1-2-3 * * * *', 'minute'],
  ['1,,2 * * * *', 'minute'],
  ['-1 * * * *', 'minute'],
  ['1.5 * * * *', 'minute'],
  ['0 0 30 2 *', 'day of month'],
  ['0 0 31 4,6,9,11 *', 'day of month'],
  ['0 0 31 2 */2', 'day of month'],
  ['* * * *', '4 fields'],
  ['* * * * * *', '6 fields'],
  ['', '0 fields'],
  ['@reboot', '1 fields'],
  ['constructor', '1 fields'],
])('%j is refused and says where', (cron, where) => {
  expect(() => nextCronTime(cron, 0)).toThrow(
    expect.objectContaining({
      code: 'EFFECT_INVALID',
      message: expect.stringContaining(where) as string,
    }),
  )
})

describe('in a time zone', () => {
  /** The next `count` times. */
  const runs = (cron: string, zone: string, after: string, count: number): string[] => {
    const found: string[] = []
    for (let time = Date.parse(after); found.length < count;) {
      time = nextCronTime(cron, time, zone)
      found.push(new Date(time).toISOString().replace(':00.000Z', 'Z'))
    }
    return found
  }

  test('nine in the morning is nine on the clocks of the zone, in summer and in winter', () => {
    expect(runs('0 9 * * *', 'Europe/Zurich', '2026-03-27T12:00:00Z', 3)).toEqual([
      '2026-03-28T08:00Z',
      '2026-03-29T07:00Z',
      '2026-03-30T07:00Z',
    ])
    expect(runs('0 9 1 1 *', 'Asia/Kolkata', '2026-01-01T12:00:00Z', 1)).toEqual([
      '2027-01-01T03:30Z',
    ])
  })

  test('once a day is once, also when the time is left out or comes twice', () => {
    expect(runs('30 2 * * *', 'Europe/Zurich', '2026-03-28T12:00:00Z', 2)).toEqual([
      '2026-03-29T01:00Z',
      '2026-03-30T00:30Z',
    ])
    expect(runs('30 2 * * *', 'Europe/Zurich', '2026-10-24T12:00:00Z', 2)).toEqual([
      '2026-10-25T00:30Z',
      '2026-10-26T01:30Z',
    ])
    // Midnight itself is left out in Santiago.
    expect(runs('0 0 * * *', 'America/Santiago', '2026-09-05T12:00:00Z', 2)).toEqual([
      '2026-09-06T04:00Z',
      '2026-09-07T03:00Z',
    ])
  })

  test('every half hour goes on every half hour', () => {
    expect(runs('*/30 * * * *', 'Europe/Zurich', '2026-10-25T00:00:00Z', 4)).toEqual([
      '2026-10-25T00:30Z',
      '2026-10-25T01:00Z',
      '2026-10-25T01:30Z',
      '2026-10-25T02:00Z',
    ])
    expect(runs('*/30 1-3 * * *', 'Europe/Zurich', '2026-03-29T00:00:00Z', 3)).toEqual([
      '2026-03-29T00:30Z',
      '2026-03-29T01:00Z',
      '2026-03-29T01:30Z',
    ])
  })

  test('a zone that does not exist is refused, in a file of definitions too', () => {
    expect(() => nextCronTime('@daily', 0, 'Mars/Olympus')).toThrow(
      expect.objectContaining({
        code: 'EFFECT_INVALID',
        message: 'There is no time zone "Mars/Olympus".',
        hint: expect.stringContaining('Europe/Zurich') as string,
      }),
    )
    const source = (zone: string) => `schedule({ cron: '0 9 * * *', timeZone: '${zone}' })`
    expect(cronProblems(source('Europe/Zürich'))).toEqual([
      'There is no time zone "Europe/Zürich". Use a name of the IANA list, e.g. Europe/Zurich or America/New_York.',
    ])
    expect(cronProblems(source('Europe/Zurich'))).toEqual([])
  })

  test('agrees with croner wherever clocks change', () => {
    const zones = {
      'Europe/Zurich': ['2026-03-29T01:00Z', '2026-10-25T01:00Z'],
      'America/New_York': ['2026-03-08T07:00Z', '2026-11-01T06:00Z'],
      'America/St_Johns': ['2026-03-08T05:30Z', '2026-11-01T04:30Z'],
      'America/Santiago': ['2026-04-05T03:00Z', '2026-09-06T04:00Z'],
      'Australia/Lord_Howe': ['2026-04-04T15:00Z', '2026-10-03T15:30Z'],
      'Africa/Casablanca': ['2026-02-15T02:00Z', '2026-03-22T02:00Z'],
      'Asia/Kolkata': ['2026-03-29T01:00Z'],
    }
    const value = (min: number, max: number) =>
      fc.oneof(
        { weight: 2, arbitrary: fc.integer({ min, max }).map(String) },
        fc.constant('*'),
        fc.constantFrom('*/7', '*/15', '*/2'),
        fc
          .uniqueArray(fc.integer({ min, max }), { minLength: 2, maxLength: 3 })
          .map((list) => list.join()),
      )
    const whole = fc.constantFrom('*', '*', '*', '29', '8', '1,25', '5')
    const where = fc
      .constantFrom(...(Object.keys(zones) as Array<keyof typeof zones>))
      .chain((zone) => fc.tuple(fc.constant(zone), fc.constantFrom(...zones[zone])))
    fc.assert(
      fc.property(
        fc.tuple(
          value(0, 59),
          value(0, 5),
          whole,
          fc.constant('*'),
          fc.constantFrom('*', '*', '0'),
        ),
        where,
        fc.integer({ min: -40 * 60, max: 5 * 60 }),
        (parts, [zone, change], minutes) => {
          const cron = parts.join(' ')
          const after = Date.parse(change) + minutes * 60_000
          const oracle = new Cron(cron, { timezone: zone, mode: '5-part' })
          const [first, second] = oracle.nextRuns(2, new Date(after)).map(Number)
          expect(nextCronTime(cron, after, zone), `${cron} ${zone} ${change}`).toBe(first)
          expect(nextCronTime(cron, first!, zone)).toBe(second)
        },
      ),
      { numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 1_000 },
    )
  })
})

describe('law', () => {
  const part = (min: number, max: number) =>
    fc.oneof(
      { weight: 2, arbitrary: fc.constant('*') },
      fc.integer({ min, max }).map(String),
      fc.integer({ min: 1, max: 20 }).map((step) => `*/${step}`),
      fc
        .tuple(fc.integer({ min, max }), fc.integer({ min, max }), fc.integer({ min: 1, max: 5 }))
        .map(([a, b, step]) => `${Math.min(a, b)}-${Math.max(a, b)}/${step}`),
      fc.array(fc.integer({ min, max }), { minLength: 1, maxLength: 4 }).map((list) => list.join()),
    )
  const line = fc.tuple(part(0, 59), part(0, 23), part(1, 31), fc.constant('*'), part(0, 7))

  test('it is the smallest matching minute after the time', () => {
    fc.assert(
      fc.property(
        line.map((parts) => parts.join(' ')),
        fc.integer({ min: Date.UTC(2023, 11, 25), max: Date.UTC(2024, 3, 1) }),
        (cron, after) => {
          expect(nextCronTime(cron, after)).toBe(byTrying(cron, after))
        },
      ),
      { numRuns: process.env['SKEIN_DEEP'] ? 2_000 : 150 },
    )
  })

  /** Minute by minute; every line above comes within two months. */
  function byTrying(cron: string, after: number): number {
    const times = parseCron(cron)
    const [, , days = '', , weekdays = ''] = cron.split(' ')
    for (let time = Math.floor(after / 60_000) * 60_000 + 60_000; ; time += 60_000) {
      const date = new Date(time)
      if (!times.minutes.has(date.getUTCMinutes()) || !times.hours.has(date.getUTCHours())) continue
      const day = times.days.has(date.getUTCDate())
      const weekday = times.weekdays.has(date.getUTCDay())
      const isEither = !days.startsWith('*') && !weekdays.startsWith('*')
      if (isEither ? day || weekday : day && weekday) return time
    }
  }
})
