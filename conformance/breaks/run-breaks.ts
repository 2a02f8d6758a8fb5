import { type ChildProcess, execFileSync, fork } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { copyWorkspace } from '../../scripts/workspace-copy.ts'
import { root } from '../../scripts/workspace.ts'
import { type Break, digestOf, locate } from './break.ts'
import { allBreaks } from './index.ts'
import type { RowAnswer, RowQuestion } from './row-tests.ts'

/** When a break was last seen to turn a test of its row red, by row and digest. */
export type Seen = Readonly<Record<string, Readonly<Record<string, string>>>>

const SEEN = join(root, 'conformance/breaks/seen.json')

export function readSeen(file: string = SEEN): Seen {
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Seen) : {}
}

interface Wanted {
  readonly row: string
  readonly change: Break
}

interface RunOptions {
  /** Time after which no further break is planted. */
  readonly maxSeconds: number
  /** Writes down which breaks were seen to fail. */
  readonly writes: boolean
  /** Leaves out the breaks that were seen to fail at this commit, so that a run that was stopped goes on. */
  readonly resumes?: boolean
}

/**
 * Plants one break at a time in a copy of the repository and runs the tests of its row there. Returns the exit
 * code: 0 when every planted break turned a test of its own row red.
 */
export async function runBreaks(wanted: readonly Wanted[], options: RunOptions): Promise<number> {
  const copy = copyWorkspace()
  const survivors: string[] = []
  const deadline = performance.now() + options.maxSeconds * 1000
  let planted = 0
  const tests = new RowTests(copy.folder)
  const commit = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()
  const progress = join(root, '.tmp', 'breaks', `${commit}.json`)
  const done = options.resumes ? readSeen(progress) : {}
  try {
    for (const { row, change } of wanted) {
      if (performance.now() > deadline) break
      if (done[row]?.[digestOf(row, change)]) continue
      const { by } = change
      if (!(await tests.isGreen(row, by))) {
        survivors.push(`${row}: its tests do not pass even before the break`)
        continue
      }
      const { file, before, after } = locate(copy.folder, change)
      writeFileSync(join(copy.folder, file), after)
      const answer = await tests.ask({ row, by, changed: join(copy.folder, file) })
      const red = isNoticed(answer, change)
      writeFileSync(join(copy.folder, file), before)
      tests.changed(join(copy.folder, file))
      planted++
      const said = red ? 'noticed ' : answer === 'hung' ? 'HUNG    ' : 'SURVIVED'
      console.log(`${said} ${row} ${change.clause} (${change.in})`)
      if (!red)
        survivors.push(`${row} ${change.clause}${answer === 'hung' ? ': its tests hung' : ''}`)
      if (options.writes) note(SEEN, { row, change, red })
      if (options.resumes) note(progress, { row, change, red })
    }
  } finally {
    tests.close()
    copy.remove()
  }
  console.log(
    `${planted - survivors.length} of ${planted} breaks noticed by the tests of their row`,
  )
  for (const survivor of survivors) console.error(`not noticed: ${survivor}`)
  if (performance.now() > deadline) console.log('the others were left for lack of time')
  return survivors.length === 0 ? 0 : 1
}

/**
 * The tests of rows in one copy of the repository. They run in a process of their own, because code that was
 * broken on purpose may never end; it is killed then, and the answer is `hung`.
 */
class RowTests {
  readonly #folder: string
  #process: ChildProcess | undefined
  readonly #green = new Map<string, boolean>()

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Whether the tests of the row pass as long as nothing is broken. */
  async isGreen(row: string, by = ''): Promise<boolean> {
    const key = `${row} ${by}`
    let isGreen = this.#green.get(key) ?? (await this.#ask({ row, by })) === 'green'
    if (!isGreen && !this.#green.has(key)) {
      // What earlier breaks left behind in the process may be the cause.
      this.close()
      isGreen = (await this.#ask({ row, by })) === 'green'
    }
    this.#green.set(key, isGreen)
    return isGreen
  }

  /** `red` if a test that names the row fails now. A file that no longer loads counts as well. */
  ask(question: RowQuestion): Promise<RowAnswer> {
    return this.#ask(question)
  }

  /** Says that a file is as it was. */
  changed(file: string): void {
    this.#process?.send({ changed: file } satisfies RowQuestion)
  }

  close(): void {
    const { pid } = this.#process ?? {}
    this.#process = undefined
    if (pid === undefined) return
    try {
      process.kill(-pid, 'SIGKILL') // with the workers of Vitest
    } catch {
      // It has ended by itself.
    }
  }

  #ask(question: RowQuestion): Promise<RowAnswer> {
    this.#process ??= fork(join(this.#folder, 'conformance/breaks/row-tests.ts'), {
      cwd: this.#folder,
      detached: true,
      stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    })
    const child = this.#process
    return new Promise((resolve) => {
      const settle = (answer: RowAnswer): void => {
        clearTimeout(timer)
        child.removeAllListeners()
        resolve(answer)
      }
      const timer = setTimeout(() => {
        this.close()
        settle('hung')
      }, LONGEST_MS)
      child.once('message', (answer) => settle(answer as RowAnswer))
      child.once('exit', () => {
        this.#process = undefined
        settle('red')
      })
      child.send(question)
    })
  }
}

/** A hang says nothing about the row, unless the break is known to make its code never end. */
export function isNoticed(answer: RowAnswer, { hangs }: Break): boolean {
  return answer === 'red' || (answer === 'hung' && hangs === true)
}

/** The longest time that the tests of a row may take. */
const LONGEST_MS = 240_000

function note(file: string, { row, change, red }: Wanted & { readonly red: boolean }): void {
  const seen: Record<string, Record<string, string>> = structuredClone(readSeen(file))
  const own = { ...seen[row] }
  const digest = digestOf(row, change)
  if (red) own[digest] = new Date().toISOString().slice(0, 10)
  else delete own[digest]
  const current = new Set(allBreaks[row]!.map((one) => digestOf(row, one)))
  seen[row] = Object.fromEntries(Object.entries(own).filter(([one]) => current.has(one)))
  const sorted = Object.fromEntries(Object.entries(seen).toSorted(([a], [b]) => (a < b ? -1 : 1)))
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, `${JSON.stringify(sorted, null, 1)}\n`)
}
