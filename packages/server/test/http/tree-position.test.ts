import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  formatPosition,
  parsePosition,
  type TreePosition,
} from '../../src/streams/tree-position.ts'

const number = fc.oneof(
  fc.nat().map(String),
  fc.tuple(fc.nat(), fc.nat()).map((pair) => pair.join('.')),
)
const leaf: fc.Arbitrary<TreePosition> = fc.record({
  id: fc.oneof(number, fc.constant('x')),
  children: fc.constant([]),
})
const branch = (child: fc.Arbitrary<TreePosition>): fc.Arbitrary<TreePosition> =>
  fc.record({ id: number, children: fc.array(child, { maxLength: 4 }) })
const position = branch(branch(branch(leaf)))

test('a position survives being written', () => {
  fc.assert(
    fc.property(position, (value) => {
      expect(parsePosition(formatPosition(value))).toEqual(value)
    }),
    { numRuns: 200 },
  )
})

test('what is no position is refused, however it looks', () => {
  expect(formatPosition(parsePosition('12(5,7.2(1),0)')!)).toBe('12(5,7.2(1),0)')
  for (const text of [
    '',
    'x',
    '12(',
    '12)',
    '12()',
    '1(2,)',
    '1(2',
    '1,2',
    '1.',
    '-1',
    '1(2))',
    'x(1)',
    '1(x(1))',
    '1(xx)',
    '1 ',
    `1${'(1'.repeat(100)}`,
  ])
    expect(parsePosition(text), text).toBeUndefined()
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'0123.(,)x') }), (text) => {
      const parsed = parsePosition(text)
      if (parsed) expect(formatPosition(parsed)).toBe(text)
    }),
    { numRuns: 300 },
  )
})
