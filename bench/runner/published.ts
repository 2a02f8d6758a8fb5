import { execFile } from 'node:child_process'
import { globSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { bundlePackage } from '../../scripts/build/bundle.ts'
import { findPackages, root } from '../../scripts/workspace.ts'

/** Bundles the packages whose sources are newer than what was built of them. */
export async function bundleChanged(): Promise<void> {
  for (const entry of findPackages()) {
    const newest = (pattern: string): number =>
      Math.max(
        0,
        ...globSync(pattern, { cwd: entry.folder }).map((file) => changedAt(entry.folder, file)),
      )
    if (newest('src/**/*.ts') > newest('dist/**/*.js')) await bundlePackage(entry)
  }
}

function changedAt(folder: string, file: string): number {
  return statSync(join(folder, file)).mtimeMs
}

export interface ProgramRun {
  readonly stdout: string
  /** From the start of the process to its end. */
  readonly wallMs: number
}

/** Runs a program in a new process that sees the packages as they are published, not their sources. */
export async function runPublished(
  program: string,
  args: readonly string[] = [],
): Promise<ProgramRun> {
  const start = performance.now()
  const options = ['--no-warnings', '--input-type=module', '-e', program, ...args]
  const { stdout } = await promisify(execFile)(process.execPath, options, { cwd: root })
  return { stdout, wallMs: performance.now() - start }
}
