import { expect, test } from 'vitest'
import { emptyTypeTests } from './empty-type-tests.ts'
import { toMarkdown } from './markdown.ts'
import { evaluate } from './report.ts'
import type { TestOutcome } from './results.ts'
import type { Spec } from './rows.ts'

const ids = ['UPP-001', 'UPP-002', 'UPP-003', 'UPP-004', 'UPP-005', 'UPP-006']
const specs: Spec[] = [
  {
    spec: 'UPP',
    version: '1',
    rows: ids.map((id) => ({ id, section: '1', title: `about ${id}` })),
  },
]

function outcome(
  title: string,
  status: TestOutcome['status'] = 'passed',
  file = 'a.test.ts',
): TestOutcome {
  return { title, status, file, durationMs: 1 }
}

test('only a passing test whose title begins with the id proves a row', () => {
  const { report, proofs, problems } = evaluate(specs, [
    outcome('UPP-001 passes'),
    outcome('UPP-002 fails', 'failed'),
    outcome('UPP-003 is skipped', 'skipped'),
    outcome('mentions UPP-004'),
    outcome('UPP-005 passes once'),
    outcome('UPP-005 and fails once', 'failed'),
  ])
  expect(report).toEqual({
    specs: {
      UPP: {
        rows: 6,
        proved: 1,
        failing: ['UPP-002', 'UPP-005'],
        missing: ['UPP-003', 'UPP-004', 'UPP-006'],
      },
    },
  })
  expect([...proofs]).toEqual([['UPP-001', ['a.test.ts']]])
  expect(problems).toEqual([])
})

test('a test proves three rows at most', () => {
  const three = evaluate(specs, [outcome('UPP-001 UPP-002 UPP-003 together')])
  expect(three.report.specs['UPP']?.proved).toBe(3)
  const four = evaluate(specs, [outcome('UPP-001 UPP-002 UPP-003 UPP-004 together')])
  expect(four.report.specs['UPP']?.proved).toBe(0)
  expect(four.problems).toHaveLength(1)
})

test('an id that is no row is reported', () => {
  expect(evaluate(specs, [outcome('UPP-999 does not exist')]).problems[0]).toContain('UPP-999')
})

test('the page counts the rows and links the tests', () => {
  const page = toMarkdown(
    specs,
    evaluate(specs, [outcome('UPP-001 passes'), outcome('UPP-002 x', 'failed')]),
  )
  expect(page).toContain('| UPP | 1 | 6 | 1 | 1 | 4 |')
  expect(page).toContain('| UPP-001 | 1 | about UPP-001 | [a.test.ts](../a.test.ts) |')
  expect(page).toContain('| UPP-002 | 1 | about UPP-002 | **failing** |')
  expect(page).toContain('| UPP-003 | 1 | about UPP-003 | – |')
})

test('a test that passes without proving anything proves no row and is reported', () => {
  const fails = { ...outcome('UPP-001 x'), provesNothing: 'is expected to fail' }
  const { report, problems } = evaluate(specs, [fails])
  expect(report.specs['UPP']?.missing).toContain('UPP-001')
  expect(problems).toEqual(['a.test.ts: "UPP-001 x" is expected to fail, so it proves no row.'])
})

test('type tests without an assertion are found', () => {
  const text = `
    test('a', () => {})
    test('b', () => { const x = 1 })
    test('c', () => { expectTypeOf(1).toEqualTypeOf<number>() })
    test('d', () => {
      // @ts-expect-error -- no number
      const x: number = ''
    })`
  expect(emptyTypeTests('a.test-d.ts', text)).toEqual(['a', 'b'])
})
