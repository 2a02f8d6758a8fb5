import { execFileSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { mutateRows } from '../conformance/mutate/mutate-rows.ts'
import { readJson, root, run } from './workspace.ts'

interface Reached {
  /** What the counts were reached with: another commit begins again. */
  readonly commit: string
  readonly files: Record<string, { readonly ok: boolean; readonly seconds: number }>
}

const record = join(root, '.tmp', 'deep.json')

/**
 * `npm run test:deep`: each test file that has a deep count (`SKEIN_DEEP`, `countOf`), one after the other. What
 * has passed is noted after each file, so a run that was stopped continues where it was; `--again` begins
 * anew, and names of files run only those. Then mutants of the code under the requirement rows, for
 * `--minutes` (60); the name `mutation` runs only those. Ends with a table of what was reached.
 */
export async function runDeepTests(args: readonly string[]): Promise<number> {
  const { values, positionals: names } = parseArgs({
    args: [...args],
    options: {
      again: { type: 'boolean', default: false },
      minutes: { type: 'string', default: '60' },
    },
    allowPositionals: true,
  })
  const files = globSync('{packages,conformance,scripts,examples,bench}/**/*.test.ts', {
    cwd: root,
    exclude: (path) => /node_modules|dist/.test(path),
  })
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => readFileSync(join(root, path), 'utf8').match(/SKEIN_DEEP|countOf\(/))
    .filter((path) => names.length === 0 || names.some((name) => path.includes(name)))
    .toSorted()
  const reached = values.again ? begin() : resume()
  for (const [index, file] of files.entries()) {
    if (reached.files[file]?.ok) continue
    console.log(`\n=== ${index + 1} of ${files.length}: ${file}`)
    const start = performance.now()
    const { code } = await run('vitest', ['run', '--reporter=default', file], {
      env: { SKEIN_DEEP: '1' },
    })
    reached.files[file] = { ok: code === 0, seconds: (performance.now() - start) / 1000 }
    mkdirSync(join(root, '.tmp'), { recursive: true })
    writeFileSync(record, `${JSON.stringify(reached, null, 1)}\n`)
  }
  if (names.length === 0 || names.includes('mutation')) {
    console.log('\n=== mutation')
    await mutateRows({
      names: [],
      minutes: Number(values.minutes),
      seed: '1',
      perRow: 10,
      again: values.again,
    })
  }
  console.log(`\n=== deep tests at ${reached.commit}`)
  for (const file of files) {
    const { ok, seconds } = reached.files[file]!
    console.log(`${ok ? 'ok  ' : 'FAIL'} ${file.padEnd(70)}${seconds.toFixed(1).padStart(9)} s`)
  }
  const failed = files.filter((file) => !reached.files[file]!.ok)
  console.log(`\n${files.length - failed.length} passed, ${failed.length} failed`)
  return failed.length === 0 ? 0 : 1
}

function begin(): Reached {
  return {
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
      cwd: root,
      encoding: 'utf8',
    }).trim(),
    files: {},
  }
}

function resume(): Reached {
  const fresh = begin()
  if (!existsSync(record)) return fresh
  const before = readJson(record) as Reached
  if (before.commit !== fresh.commit) return fresh
  const passed = Object.values(before.files).filter(({ ok }) => ok).length
  if (passed > 0) console.log(`continuing: ${passed} files have passed at ${before.commit}`)
  return before
}
