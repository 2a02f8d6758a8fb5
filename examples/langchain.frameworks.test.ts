import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findExamples, runExample } from '../scripts/examples/example.ts'

/** The programs with `langchain`. */
const programs = findExamples(join(import.meta.dirname, 'langchain'))

test('there are programs, and each says what it prints', () => {
  expect(programs.length).toBeGreaterThanOrEqual(2)
  expect(programs.filter(({ expected }) => !expected)).toEqual([])
})

describe('with LangChain', () => {
  test.for(programs)('$name prints what it promises', async (program) => {
    expect(await runExample(program)).toEqual({ code: 0, output: program.expected })
  })
})
