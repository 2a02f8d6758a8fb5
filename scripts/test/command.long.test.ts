import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadSpecs } from '../../conformance/reporter/rows.ts'
import { copyWorkspace, type WorkspaceCopy } from '../workspace-copy.ts'
import { run } from '../workspace.ts'

// `npm test` in a copy of the repository that has one file of row tests and only its rows.

const file = 'conformance/upp/example-tools.test.ts'

let copy: WorkspaceCopy
beforeAll(async () => {
  copy = copyWorkspace((path) => !/\.test(-d)?\.tsx?$/.test(path) || path === file)
  const text = read(file)
  for (const { rows, ...spec } of loadSpecs()) {
    const kept = rows.filter(({ id }) => text.includes(`'${id} `))
    write(
      `conformance/rows/${spec.spec.toLowerCase()}.json`,
      JSON.stringify({ ...spec, rows: kept }),
    )
  }
  await npmTest()
  const args = ['scripts/conformance.ts', '--write', '--results', '.tmp/test-results.json']
  expect(await run('node', args, { cwd: copy.folder, quiet: true })).toMatchObject({ code: 0 })
}, 120_000)
afterAll(() => copy.remove())

function read(path: string): string {
  return readFileSync(join(copy.folder, path), 'utf8')
}

function write(path: string, text: string): void {
  writeFileSync(join(copy.folder, path), text)
}

async function npmTest(...args: string[]): Promise<{ code: number; lines: string[] }> {
  const options = { cwd: copy.folder, quiet: true }
  const { code, output } = await run('npm', ['test', '--', ...args], options)
  return { code, lines: output.trim().split('\n') }
}

test('says at its end which rows are proved, what test:all adds, and counts in the last line', async () => {
  const { code, lines } = await npmTest()
  expect(code).toBe(0)
  const [proved, adds] = lines.filter((line) => /^conformance: |^npm run test:all/.test(line))
  expect(proved).toMatch(/^conformance: (\d+) of \1 rows proved$/)
  expect(adds).toMatch(/^npm run test:all adds sdks, .*: about \d+ minutes more\.$/)
  expect(lines.at(-1)).toMatch(/^\d+ passed, 0 failed, 0 skipped$/)
})

test('fails when the test of a row is gone; a part of the suite says nothing about rows', async () => {
  const before = read(file)
  write(file, before.replace(/^test\('UPP-120 [^]*?\n}\)\n/m, ''))
  expect(read(file)).not.toBe(before)
  const { code, lines } = await npmTest()
  expect(code).toBe(1)
  expect(lines.join('\n')).toContain('FAIL UPP, without a test that passed: UPP-120')
  expect(lines.at(-1)).toMatch(/^\d+ passed, [1-9] failed, 0 skipped$/)

  const part = await npmTest('conformance/upp')
  expect(part.code).toBe(0)
  expect(part.lines.join('\n')).not.toContain('rows proved')
  write(file, before)
})

test('fails when the only file of tests is gone', async () => {
  const before = read(file)
  rmSync(join(copy.folder, file))
  const { code, lines } = await npmTest()
  write(file, before)
  expect(code).toBe(1)
  expect(lines.at(-1)).toMatch(/ [1-9] failed, /)
})
