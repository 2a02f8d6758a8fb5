import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { root } from '../../scripts/workspace.ts'
import { mutateRows } from './mutate-rows.ts'
import { plantMutants } from './mutants.ts'
import { RowRunner } from './row-runner.ts'

// Put together, so that this file is not among those that name the row.
const row = `UPP-${'095'}`
const source = 'packages/base/src/sse.ts'
const request = { row, files: ['packages/base/src/sse.test.ts'] }
const folder = mkdtempSync(join(tmpdir(), 'skein-mutation-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('a row is tried, its survivors are listed, and the next run takes the result from the notes', async () => {
  const lines: string[] = []
  const options = {
    names: [row],
    minutes: 5,
    seed: 'test',
    perRow: 4,
    again: false,
    log: (line: string) => void lines.push(line),
    stateFile: join(folder, 'mutation.json'),
  }
  expect(await mutateRows(options)).toBe(0)
  const score = lines.find((line) => line.startsWith(`${row}: `)) ?? ''
  const noticed = Number(/: (\d) of 4 noticed \(\d+ reached\)$/.exec(score)?.[1])
  expect(noticed).toBeGreaterThan(0)
  const survivors = lines.filter((line) => /^ {2}packages\/[^:]+\.ts:\d+ {2}.+ -> ./.test(line))
  expect(survivors).toHaveLength(4 - noticed)
  expect(lines.at(-1)).toBe('1 of 1 rows tried')

  lines.length = 0
  const start = performance.now()
  expect(await mutateRows(options)).toBe(0)
  expect(lines[0]).toContain('1 tried before')
  expect(lines.filter((line) => line.startsWith(row))).toEqual([])
  expect(lines.find((line) => line.startsWith('all '))).toContain(`${noticed} of 4 noticed`)
  expect(performance.now() - start).toBeLessThan(5_000)
})

test('a mutant that loops without end is noticed, and so is one whose process has to be ended', async () => {
  const { mutants } = plantMutants(readFileSync(join(root, source), 'utf8'), source)
  const { id } = mutants.find(({ before, after }) => before === 'start = next' && after === '')!
  const runner = new RowRunner()
  const hurried = new RowRunner(0)
  try {
    const endless = { ...request, mutant: `${source}#${id}`, limitMs: 3_000 }
    expect(await runner.run(endless)).toMatchObject({ passed: 0, isRed: true })
    expect(await hurried.run({ ...request, limitMs: 1 })).toBe('stopped')
    expect(await hurried.run({ ...request, limitMs: 120_000 })).toMatchObject({ isRed: false })
  } finally {
    await runner.close()
    await hurried.close()
  }
})

test('tests that fail leave nothing behind for the next run', async () => {
  const { mutants } = plantMutants(readFileSync(join(root, source), 'utf8'), source)
  const { id } = mutants.find(({ before, after }) => before === "'data:'" && after === "''")!
  const files = ['packages/ai/test/testing/vendor-server.test.ts']
  const runner = new RowRunner()
  try {
    const noticed = await runner.run({ ...request, limitMs: 30_000, mutant: `${source}#${id}` })
    expect(noticed).toMatchObject({ isRed: true })
    expect(await runner.run({ row, files, limitMs: 60_000 })).toMatchObject({ isRed: false })
  } finally {
    await runner.close()
  }
})

test('a name that is neither a row nor a specification is an error', async () => {
  expect(await mutateRows({ names: ['UPX'], minutes: 1, seed: '1', perRow: 1, again: false })).toBe(
    1,
  )
})
