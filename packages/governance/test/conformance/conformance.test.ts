import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { conformanceReport } from './report.ts'

test('UAICP-35 the report covers phases, invariants, objects and the twelve baseline checks', async () => {
  const report = await conformanceReport()
  expect(report.baseline).toHaveLength(12)
  for (const { title, result } of report.baseline) expect(result, title).toBe('pass')
  expect(new Set(report.behaviour.map(({ part }) => part))).toEqual(
    new Set(['phases', 'invariants', 'objects']),
  )
  for (const { title, result } of report.behaviour) expect(result, title).toBe('pass')
  expect(report).toMatchObject({ uaicp_version: '0.3', conformant: true })
})

const source = join(import.meta.dirname, '../../src')

test('UAICP-37 the core imports no framework and no model client', () => {
  const files = globSync('{*,contract/*,governor/*,journal/*,schema/*}.ts', { cwd: source }).filter(
    (file) => !/\.test(-d)?\.ts$/.test(file),
  )
  expect(files.length).toBeGreaterThan(25)
  const foreign = files.flatMap((file) => {
    const text = readFileSync(join(source, file), 'utf8')
    const imports = [...text.matchAll(/(?:from|import\(?)\s*'([^']+)'/g)].map(
      (match) => match[1] ?? '',
    )
    return imports.filter((name) => !name.startsWith('.') && name !== '@skein/base')
  })
  expect(foreign).toEqual([])
})

test('UAICP-37 no word of a model, a prompt or an agent loop is in what the core offers', async () => {
  const core = await import('../../src/index.ts')
  const names = Object.keys(core)
  expect(names.filter((name) => /llm|model|prompt|agentLoop|graph/i.test(name))).toEqual([])
})

test('all 37 rows are named by a test of this package', () => {
  const files = globSync('{src,test}/**/*.test.ts', { cwd: join(source, '..') })
  const text = files.map((file) => readFileSync(join(source, '..', file), 'utf8')).join('\n')
  const rows = Array.from({ length: 37 }, (_, index) => `UAICP-${`${index + 1}`.padStart(2, '0')}`)
  expect(rows.filter((row) => !text.includes(`'${row} `))).toEqual([])
})
