import { expect, test } from 'vitest'
import { isOfLimits, joinedPoints, knownPoints, namedPoints } from './commit-points.ts'

test('the points of drains are found wherever their files are', () => {
  const left = namedPoints().filter(({ file }) => isOfLimits(file))
  expect(left.filter(({ point }) => !point.startsWith('limit_'))).toEqual([])
  expect(joinedPoints.filter((point) => !knownPoints()(point))).toEqual([])
})
