/**
 * `npm test`: every test and type test of the workspace, with results kept for `npm run conformance`.
 * Arguments go to Vitest (`npm test -- packages/base`); `--deep` raises the counts of fuzz and seeds.
 */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { root, run } from './workspace.ts'

const args = process.argv.slice(2)
const deep = args.includes('--deep')

mkdirSync(join(root, '.tmp'), { recursive: true })
const { code } = await run(
  'vitest',
  [
    'run',
    '--typecheck',
    // A focused test would silently leave the others out.
    '--allowOnly=false',
    '--reporter=default',
    '--reporter=json',
    '--outputFile.json=.tmp/test-results.json',
    ...args.filter((argument) => argument !== '--deep'),
  ],
  { env: deep ? { SKEIN_DEEP: '1' } : {} },
)
process.exitCode = code
