import { expect, test } from 'vitest'
import { isSameJson } from './same-json.ts'

test.each([
  [{ a: 1, b: [null, 'x'] }, { b: [null, 'x'], a: 1 }, true],
  [{ a: 1 }, { a: 1, b: 2 }, false],
  [{ a: 1, b: 2 }, { a: 1, c: 2 }, false],
  [[1, 2], [2, 1], false],
  [[], {}, false],
  [{ 0: 'x' }, ['x'], false],
  [null, {}, false],
  [null, null, true],
  ['1', 1, false],
  [{}, { __proto__: null }, true],
])('%j and %j: %s', (left, right, expected) => {
  expect(isSameJson(left, right)).toBe(expected)
  expect(isSameJson(right, left)).toBe(expected)
})
