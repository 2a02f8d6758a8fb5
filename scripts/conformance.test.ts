import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadSpecs } from '../conformance/reporter/rows.ts'
import { copyWorkspace, type WorkspaceCopy } from './workspace-copy.ts'
import { run } from './workspace.ts'

// The whole command in a copy of the repository that has one file of row tests and only its rows.

const file = 'conformance/upp/example-tools.test.ts'
const title = "test('UPP-120 deleting asks for approval"

let copy: WorkspaceCopy
beforeAll(async () => {
  copy = copyWorkspace((path) => !/\.test(-d)?\.tsx?$/.test(path) || path === file)
  const text = read(file)
  for (const { rows, ...spec } of loadSpecs()) {
    const kept = rows.filter(({ id }) => text.includes(`'${id} `))
    const path = `conformance/rows/${spec.spec.toLowerCase()}.json`
    write(path, JSON.stringify({ ...spec, rows: kept }))
  }
  expect(await conformance('--write')).toMatchObject({ code: 0 })
}, 120_000)
afterAll(() => copy.remove())

function read(path: string): string {
  return readFileSync(join(copy.folder, path), 'utf8')
}

function write(path: string, text: string): void {
  writeFileSync(join(copy.folder, path), text)
}

async function conformance(...args: string[]): Promise<{ code: number; output: string }> {
  const { code, output } = await run('npm', ['run', 'conformance', '--', ...args], {
    cwd: copy.folder,
    quiet: true,
  })
  return { code, output: output.replaceAll(/\u001b\[[\d;]*m/g, '') }
}

describe('the conformance step of CI', () => {
  test(
    'passes when the committed report is what the tests prove',
    { timeout: 60_000 },
    async () => {
      expect(await conformance()).toMatchObject({ code: 0 })
    },
  )

  const missing = /without: UPP-120/
  const changes: readonly (readonly [string, (text: string) => string, RegExp])[] = [
    ['deleted', (text) => text.replace(/^test\('UPP-120 [^]*?\n}\)\n/m, ''), missing],
    ['skipped', (text) => text.replace(title, title.replace('test(', 'test.skip(')), missing],
    [
      'renamed',
      (text) => text.replace(title, "test('deleting (UPP-120) asks for approval"),
      missing,
    ],
    [
      'emptied',
      (text) => text.replace(/^(test\('UPP-120 .*)[^]*?\n}\)\n/m, '$1\n})\n'),
      /failing: UPP-120/,
    ],
    [
      'expected to fail',
      (text) =>
        text.replace(/^test\('UPP-120 (.*)\n/m, "test.fails('UPP-120 $1\n  expect(1).toBe(2)\n"),
      /UPP-120 .*is expected to fail, so it proves no row/,
    ],
  ]
  test.each(changes)(
    'fails when the test of a row is %s',
    { timeout: 60_000 },
    async (_, change, says) => {
      const before = read(file)
      write(file, change(before))
      expect(read(file)).not.toBe(before)
      const { code, output } = await conformance()
      write(file, before)
      expect(output).toMatch(says)
      expect(code).toBe(1)
    },
  )

  test('fails when a file of row tests is gone', { timeout: 60_000 }, async () => {
    const before = read(file)
    rmSync(join(copy.folder, file))
    const { code, output } = await conformance()
    write(file, before)
    expect(output).toMatch(/0 of +\d+ rows proved/)
    expect(code).toBe(1)
  })

  test.each(['conformance/report.json', 'docs/conformance.md'])(
    'fails when %s was edited',
    { timeout: 60_000 },
    async (path) => {
      const before = read(path)
      write(
        path,
        before.replace(/\d+/, (number) => `${Number(number) + 1}`),
      )
      // As CI does: the results are there already.
      const { code, output } = await conformance('--results', '.tmp/conformance-results.json')
      write(path, before)
      expect(output).toContain(`${path} is not what the tests prove`)
      expect(code).toBe(1)
    },
  )
})
