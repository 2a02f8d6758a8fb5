import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BenchResult } from './run-bench.ts'

/** Results that a run has had so far, so that a run that was stopped continues where it was. */
export interface KeptResults {
  get(id: string): BenchResult | undefined
  keep(result: BenchResult): void
}

/** Keeps results in a folder of their own for this `state`: what is measured, and where. */
export function keptResults(folder: string, state: string): KeptResults {
  const own = join(folder, createHash('sha256').update(state).digest('hex').slice(0, 12))
  const fileOf = (id: string): string => join(own, `${id.replaceAll('/', '-')}.json`)
  return {
    get(id) {
      const file = fileOf(id)
      return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as BenchResult) : undefined
    },
    keep(result) {
      mkdirSync(own, { recursive: true })
      const file = fileOf(result.id)
      writeFileSync(`${file}.part`, JSON.stringify(result))
      renameSync(`${file}.part`, file) // a run may be killed while it writes
    },
  }
}

/** Returns what the sources are: the commit, and what was changed since. */
export function sourceState(root: string): string {
  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 28 })
  return git('rev-parse', 'HEAD') + git('diff', 'HEAD', '--', 'packages', 'bench/*.ts')
}
