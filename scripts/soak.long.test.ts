import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

test(
  'six seconds of mixed load: every kind of job is done, none fails, and the report has its tables',
  { timeout: 180_000 },
  async () => {
    const program = join(import.meta.dirname, 'soak.ts')
    const args = ['--minutes', '0.1', '--seed', '3', '--held', '20', '--rate', '16']
    // The exit code also judges the heap, which says nothing after seconds.
    const run = promisify(execFile)(process.execPath, [
      '--conditions=@skein/source',
      program,
      ...args,
    ])
    const { stdout } = await run.catch((error: { stdout: string }) => error)
    expect(stdout).toMatch(
      /Heap after collection, at rest: [\d.]+ MB after a third, [\d.]+ MB at the end/,
    )
    expect(stdout).toContain('| failed | 0 |')
    expect(stdout).not.toContain('The server reported')
    for (const job of ['turn', 'stream', '/v1', 'approval', 'child'])
      expect(stdout).toMatch(new RegExp(`^\\| ${job} \\| [1-9]`, 'm'))
    expect(stdout).toMatch(/^\| an open, quiet stream \(\d+\) \| \d+ \|/m)
    expect(stdout).toMatch(/^\| Object \| \d+ \| [\d.]+ \| \d+ \| [\d.]+ \|$/m)
  },
)
