import { describe, expect, test } from 'vitest'
import { findExamples, runExample } from './example.ts'
import { groupOfProgram } from './groups.ts'

/** Tests that each example of a group, or each that works after `npm ci`, prints what it promises. */
export function testExamples(group: string | undefined): void {
  const examples = findExamples().filter(({ file }) => groupOfProgram(file) === group)

  test('there are examples, and each says what it prints', () => {
    expect(examples.length).toBeGreaterThan(0)
    expect(examples.filter(({ expected }) => !expected).map(({ name }) => name)).toEqual([])
  })

  describe('each example prints what it promises', () => {
    test.for(examples)('$name', async (example) => {
      expect(await runExample(example)).toEqual({ code: 0, output: example.expected })
    })
  })
}
