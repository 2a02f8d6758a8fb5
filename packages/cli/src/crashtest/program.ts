import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { placeholderKeys } from './model-hosts.ts'
import type { Notes } from './notes.ts'
import { type Preloaded, VARIABLE } from './preload/protocol.ts'
import type { ServerUse } from './server-use.ts'

/** How often the runner looks at a program that runs, in ms. */
const POLL_MS = 20
/** How long a program has to end after SIGTERM, in ms. */
const GRACE_MS = 2000
/** How much of the end of a program's output is kept, in characters. */
const MAX_OUTPUT = 20_000

/** The program under test. */
export interface Program {
  /** The program and its arguments; one word with spaces is a line for the shell. */
  readonly words: readonly string[]
  /** The flags of Node for all of its processes. */
  readonly nodeOptions: readonly string[]
}

/** How a start of the program ended. `stopped`: the runner ended a server. */
export interface StartEnding {
  readonly how: 'exited' | 'killed' | 'stopped' | 'timed_out'
  readonly code: number | null
  /** The end of what it has written. */
  readonly output: string
}

export interface StartOptions {
  readonly cwd: string
  readonly temporary: string
  readonly notes: Notes
  readonly preloaded: Omit<Preloaded, 'notes' | 'preload'>
  /** The file of the preload. */
  readonly preload: string
  readonly timeoutMs: number
  /** Says when a server is done; undefined for a program that ends. */
  readonly use: ServerUse | undefined
  readonly signal: AbortSignal
}

/** One start of the program, in a process group of its own. */
export class Started {
  readonly ended: Promise<StartEnding>
  readonly #child: ChildProcess
  readonly #notes: Notes
  #output = ''
  #how: StartEnding['how'] = 'exited'

  constructor(program: Program, options: StartOptions) {
    const { cwd, notes, timeoutMs, use, signal } = options
    const [first = '', ...rest] = program.words
    const isLine = rest.length === 0 && /\s/.test(first)
    this.#notes = notes
    this.#child = spawn(first, isLine ? [] : rest, {
      cwd,
      env: environment(program, options),
      shell: isLine,
      detached: process.platform !== 'win32',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    if (this.#child.pid !== undefined) notes.setGroup(this.#child.pid)
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream
        ?.setEncoding('utf8')
        .on('data', (text: string) => (this.#output = (this.#output + text).slice(-MAX_OUTPUT)))
    const exited = new Promise<number | null>((resolve) => {
      this.#child.once('error', (error) => {
        this.#output += error.message
        resolve(127)
      })
      this.#child.once('exit', resolve)
    })
    this.ended = this.#watch(exited, { timeoutMs, use, signal })
  }

  get output(): string {
    return this.#output
  }

  /** Sends SIGKILL to all processes of the program, also to those that left its group. */
  kill(): void {
    this.#how = 'killed'
    this.#signal('SIGKILL')
  }

  #signal(name: 'SIGTERM' | 'SIGKILL'): void {
    const { pid } = this.#child
    if (pid !== undefined && process.platform !== 'win32') trySignal(-pid, name)
    else this.#child.kill(name)
    if (name === 'SIGKILL') for (const one of this.#notes.pids()) trySignal(one, name)
  }

  async #watch(
    exited: Promise<number | null>,
    { timeoutMs, use, signal }: Pick<StartOptions, 'timeoutMs' | 'use' | 'signal'>,
  ): Promise<StartEnding> {
    const deadline = performance.now() + timeoutMs
    let code: number | null | undefined
    void exited.then((result) => (code = result))
    while (code === undefined) {
      await Promise.race([exited, sleep(POLL_MS)])
      if (code !== undefined) break
      if (signal.aborted || this.#notes.hasDied) this.kill()
      else if (performance.now() > deadline) {
        this.#how = 'timed_out'
        this.#signal('SIGKILL')
      } else if (use && (await use.isOver(this.#output))) {
        this.#how = 'stopped'
        this.#signal('SIGTERM')
        await Promise.race([exited, sleep(GRACE_MS)])
        this.#signal('SIGKILL')
      } else continue
      await exited
    }
    // What is left of its children must not work while the program is started again.
    if (this.#notes.hasDied) this.#how = 'killed'
    this.#signal('SIGKILL')
    // The output that is still in the pipe.
    await new Promise((resolve) => setImmediate(resolve))
    this.#child.stdout?.destroy()
    this.#child.stderr?.destroy()
    return { how: this.#how, code: code ?? null, output: this.#output }
  }
}

function trySignal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error // it has ended
  }
}

function environment(
  { nodeOptions }: Program,
  { cwd, temporary, notes, preloaded, preload: file }: StartOptions,
): NodeJS.ProcessEnv {
  const preload = pathToFileURL(file).href
  const value: Preloaded = { ...preloaded, notes: notes.folder, preload }
  return {
    ...process.env,
    ...placeholderKeys(process.env),
    PWD: cwd,
    TMPDIR: temporary,
    NODE_OPTIONS: [process.env['NODE_OPTIONS'], ...nodeOptions, `--import=${preload}`]
      .filter(Boolean)
      .join(' '),
    [VARIABLE]: JSON.stringify(value),
  }
}
