import { describe, expect, test } from 'vitest'
import { findExamples, runExample } from '../scripts/examples/example.ts'

const examples = findExamples()

test('there are examples, and each says what it prints', () => {
  expect(examples.length).toBeGreaterThan(0)
  expect(examples.filter(({ expected }) => !expected).map(({ name }) => name)).toEqual([])
})

describe('each example prints what it promises', () => {
  test.each(examples)('$name', async (example) => {
    expect(await runExample(example)).toEqual({ code: 0, output: example.expected })
  })
})
