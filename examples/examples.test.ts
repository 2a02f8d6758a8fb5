import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { noPostgres } from '../packages/postgres/test/server.ts'
import { findExamples, runExample } from '../scripts/examples/example.ts'

const examples = findExamples()

test('there are examples, and each says what it prints', () => {
  expect(examples.length).toBeGreaterThan(0)
  expect(examples.filter(({ expected }) => !expected).map(({ name }) => name)).toEqual([])
})

describe('each example prints what it promises', () => {
  test.for(examples)('$name', async (example, context) => {
    const needsServer = readFileSync(example.file, 'utf8').includes("'./postgres-database.ts'")
    if (needsServer) context.skip(noPostgres !== undefined, noPostgres)
    expect(await runExample(example)).toEqual({ code: 0, output: example.expected })
  })
})
