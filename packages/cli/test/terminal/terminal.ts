import { onTestFinished } from 'vitest'
import { ownEnv, skeinBin } from '../kit.ts'

type Pty = typeof import('@lydell/node-pty')
/** Its native part exists for some platforms only. */
export const pty: Pty | string = await import('@lydell/node-pty').catch(
  (error: unknown) => `skipped: no pseudo-terminal here (${String(error).split('\n')[0]})`,
)
if (typeof pty === 'string') process.stderr.write(`${pty}\n`)

/** A command in a terminal of its own: 100 columns, as a person has it. */
export class Terminal {
  output = ''
  readonly ended: Promise<number>
  readonly #process: ReturnType<Pty['spawn']>
  readonly #watchers = new Set<() => void>()
  #seen = 0

  constructor(
    args: readonly string[],
    {
      cwd,
      env = {},
      bin = skeinBin,
    }: { readonly cwd: string; readonly env?: Record<string, string>; readonly bin?: string },
  ) {
    this.#process = (pty as Pty).spawn(process.execPath, [bin, ...args], {
      cols: 100,
      rows: 30,
      cwd,
      name: 'xterm-256color',
      env: { ...ownEnv(), TERM: 'xterm-256color', ...env },
      // As text, so that what is looked for is what a terminal decodes.
      encoding: 'utf8',
    })
    this.#process.onData((text) => {
      this.output += text
      for (const watcher of this.#watchers) watcher()
    })
    this.ended = new Promise((resolve) => this.#process.onExit(({ exitCode }) => resolve(exitCode)))
    onTestFinished(async () => {
      this.#process.kill('SIGKILL')
      await this.ended
    })
  }

  type(text: string): void {
    this.#process.write(text)
  }

  /** Resolves once this is written behind what was waited for before. */
  async until(wanted: string): Promise<void> {
    const isOver = this.ended.then(() => 'over' as const)
    for (;;) {
      const at = this.output.indexOf(wanted, this.#seen)
      if (at >= 0) return void (this.#seen = at + wanted.length)
      const more = new Promise<'more'>((resolve) => this.#watchers.add(() => resolve('more')))
      if (
        (await Promise.race([more, isOver])) === 'over' &&
        !this.output.includes(wanted, this.#seen)
      )
        throw new Error(`It ended without "${wanted}":\n${this.output.slice(this.#seen)}`)
    }
  }
}
