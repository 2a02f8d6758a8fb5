import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { keptResults } from './kept.ts'
import type { BenchResult } from './run-bench.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-kept-'))
afterAll(() => rmSync(folder, { recursive: true }))

const result: BenchResult = {
  id: 'ai/call',
  title: 'T',
  measure: 'cpu',
  unit: 'ms',
  baseline: 'raw',
  contenders: [],
}

test('a result is found again by a run of the same sources, and by no other', () => {
  keptResults(folder, 'one').keep(result)
  expect(keptResults(folder, 'one').get('ai/call')).toEqual(result)
  expect(keptResults(folder, 'one').get('ai/call-64')).toBeUndefined()
  expect(keptResults(folder, 'two').get('ai/call')).toBeUndefined()
})
