import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { root, run } from '../../scripts/workspace.ts'
import { proveRows } from './proved.ts'
import { readResults, type TestRun } from './results.ts'
import type { Spec } from './rows.ts'

// A run of Vitest, with the settings of this repository, over tests that break the rules.

const tests: Readonly<Record<string, string>> = {
  'UPP-001': `test('UPP-001 passes', () => expect(1).toBe(1))`,
  'UPP-002': ``,
  'UPP-003': `test.skip('UPP-003 is skipped', () => expect(1).toBe(1))`,
  'UPP-004': `test('UPP-004 is emptied', () => {})`,
  'UPP-005': `test('renamed (UPP-005)', () => expect(1).toBe(1))`,
  'UPP-006': `test.fails('UPP-006 is expected to fail', () => expect(1).toBe(2))`,
  'UPP-007': `test('UPP-007 passes', () => expect(1).toBe(1))\ntest('UPP-007 fails once', () => expect(1).toBe(2))`,
}
const rowOf = (id: string) => ({ id, section: '1', title: `about ${id}` })
const specsOf = (...ids: string[]): Spec[] => [{ spec: 'UPP', version: '1', rows: ids.map(rowOf) }]

let folder: string
let results: TestRun
beforeAll(async () => {
  mkdirSync(join(root, '.tmp'), { recursive: true })
  folder = mkdtempSync(join(root, '.tmp', 'proved-'))
  mkdirSync(join(folder, 'conformance'))
  const config = `import base from '../../vitest.config.ts'
    export default { root: import.meta.dirname, test: { include: ['*.test.ts'], expect: base.test.expect } }`
  writeFileSync(join(folder, 'vitest.config.ts'), config)
  for (const [id, text] of Object.entries(tests)) {
    const filler = `test('of no row', () => expect(1).toBe(1))`
    writeFileSync(
      join(folder, `${id}.test.ts`),
      `import { expect, test } from 'vitest'\n${text}\n${filler}\n`,
    )
  }
  const reporter = join(import.meta.dirname, 'vitest-reporter.ts')
  const file = join(folder, 'results.json')
  await run(
    'vitest',
    ['run', `--config=${join(folder, 'vitest.config.ts')}`, `--reporter=${reporter}`],
    {
      quiet: true,
      env: { SKEIN_RESULTS: file },
    },
  )
  results = readResults(file)
}, 60_000)
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test.each([
  ['deleted', 'UPP-002', /without a test that passed: UPP-002/],
  ['skipped', 'UPP-003', /without a test that passed: UPP-003/],
  ['emptied', 'UPP-004', /failing: UPP-004/],
  ['renamed', 'UPP-005', /without a test that passed: UPP-005/],
  ['expected to fail', 'UPP-006', /UPP-006 .*is expected to fail, so it proves no row/],
  ['one of two that fails', 'UPP-007', /failing: UPP-007/],
])('a row is not proved when its test is %s', (_, id, says) => {
  const { problems, total } = proveRows(folder, results, { specs: specsOf('UPP-001', id) })
  expect(problems.join('\n')).toMatch(says)
  expect(total).toBe('1 of 2 rows proved')
})

test('the report is written on request; afterwards a run that agrees with it has no problem', () => {
  const own = { tests: results.tests.filter(({ file }) => file.includes('001')), brokenFiles: [] }
  const judge = (write: boolean) =>
    proveRows(folder, { ...results, ...own }, { specs: specsOf('UPP-001'), write })
  expect(judge(false).problems).toEqual([expect.stringMatching(/report\.json is not what/)])
  expect(judge(true).problems).toEqual([])
  expect(judge(false)).toMatchObject({ total: '1 of 1 rows proved', problems: [] })
  expect(readFileSync(join(folder, '.tmp/conformance.md'), 'utf8')).toContain('UPP-001.test.ts')

  const report = join(folder, 'conformance/report.json')
  writeFileSync(report, readFileSync(report, 'utf8').replace(/\d/, '7'))
  expect(judge(false).problems).toEqual([expect.stringMatching(/report\.json is not what/)])
})
