import { expect, test } from 'vitest'
import { choosePoints, crashPoints } from './choose-points.ts'
import type { ProgramStep } from './preload/protocol.ts'

const steps: ProgramStep[] = Array.from({ length: 20 }, (_, index) => ({
  number: index + 1,
  kind: index % 10 === 5 ? 'request' : 'commit',
  name: `step ${index + 1}`,
}))
const names = (max: number, seed: number): string[] =>
  choosePoints(crashPoints(steps), { max, seed }).map(({ step, when }) => `${when} ${step.number}`)

test('all points, in order, if there are not too many', () => {
  expect(names(40, 1)).toHaveLength(40)
  expect(names(40, 1).slice(0, 3)).toEqual(['before 1', 'after 1', 'before 2'])
})

test('of too many, those of requests come first, and the seed chooses the rest', () => {
  expect(names(4, 1)).toEqual(['before 6', 'after 6', 'before 16', 'after 16'])
  expect(names(12, 1)).toEqual(names(12, 1))
  expect(names(12, 1)).not.toEqual(names(12, 2))
  expect(names(12, 2)).toEqual(expect.arrayContaining(names(4, 2)))
})

test('steps with the same name are numbered', () => {
  const same = [1, 2, 3].map(
    (number) => ({ number, kind: 'commit', name: number < 3 ? 'a' : 'b' }) as const,
  )
  expect(crashPoints(same).map(({ step }) => step.name)).toEqual([
    'a #1',
    'a #1',
    'a #2',
    'a #2',
    'b',
    'b',
  ])
})
