import { spawn } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { countOf } from '../../../conformance/support/counts.ts'

const root = join(import.meta.dirname, '..', '..', '..')

/** The examples that make threads and need nothing but this process. */
const examples = globSync('examples/[0-9]*.ts', { cwd: root })
  .toSorted()
  .filter((path) => {
    const text = readFileSync(join(root, path), 'utf8')
    return (
      text.includes('createRuntime(') && !/postgres-database|restate-server|restate'/.test(text)
    )
  })
  // The second thread of 109 is a replay on other definitions than those of its runtime. A hook of 112 changes messages
  // before they are stored, which is not played back yet.
  .filter((path) => !/109-replay|112-guardrails/.test(path))

const wanted = countOf({ fast: 4, all: examples.length, deep: examples.length })
const share = Math.max(1, Math.floor(examples.length / wanted))

test.each(examples.filter((_, index) => index % share === 0))(
  'every thread of %s plays back to the same events',
  { timeout: 60_000 },
  async (path) => {
    const lines = await playedIn(path)
    expect(lines.filter(({ isSame }) => !isSame)).toEqual([])
  },
)

interface Line {
  readonly agent: string
  readonly isSame: boolean
  readonly message?: string
}

function playedIn(path: string): Promise<readonly Line[]> {
  const hook = join(import.meta.dirname, 'play-back-examples.ts')
  const args = ['--conditions=@skein/source', '--import', hook, path]
  const child = spawn(process.execPath, args, { cwd: root, stdio: ['ignore', 'ignore', 'pipe'] })
  const timer = setTimeout(() => child.kill('SIGKILL'), 50_000)
  let text = ''
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (text += piece))
  return new Promise((resolve) => {
    child.on('close', () => {
      clearTimeout(timer)
      const played = text.split('\n').filter((line) => line.startsWith('played '))
      resolve(played.map((line) => JSON.parse(line.slice(7)) as Line))
    })
  })
}
