import { expect, test } from 'vitest'
import { durationText, Progress } from './progress.ts'

test('counts files and tests, and names failures only when there are some', () => {
  const progress = new Progress(['a', 'b', 'c'], {}, 0)
  expect(progress.line(0)).toBe('0 of 3 files, 0 tests')
  for (let count = 0; count < 1234; count += 1) progress.testEnded(false)
  progress.fileStarted('a')
  progress.fileStarted('b')
  progress.fileEnded('a')
  expect(progress.line(1000)).toBe('1 of 3 files, 1,234 tests')
  expect(progress.running()).toEqual(['b'])
  progress.testEnded(true)
  expect(progress.line(1000)).toBe('1 of 3 files, 1,235 tests, 1 failed')
})

test('without recorded times the rest takes as long per file as the files so far', () => {
  const progress = new Progress(['a', 'b', 'c', 'd'], {}, 1000)
  progress.fileEnded('a')
  expect(progress.line(3000)).not.toContain('left')
  expect(progress.line(11_000)).toContain('about 30 s left')
})

test('with recorded times a long file counts for what it takes', () => {
  const durations = { short: 700, long: 99_700 }
  const first = new Progress(['short', 'long'], durations, 0)
  first.fileEnded('short')
  expect(first.line(4000)).toContain('about 7 min left')
  const last = new Progress(['short', 'long'], durations, 0)
  last.fileEnded('long')
  expect(last.line(100_000)).toContain('about 1 s left')
})

test('a duration is said in seconds or minutes', () => {
  expect([0, 40_000, 99_000, 125_000].map(durationText)).toEqual(['1 s', '40 s', '99 s', '2 min'])
})
