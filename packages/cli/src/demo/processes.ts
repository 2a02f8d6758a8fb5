import { type ChildProcess, spawn } from 'node:child_process'
import { isPlainObject, tryParseJson } from '@skein/base'
import { CommandError } from '../terminal/command.ts'

/** How long a process may take to print its address. Machines in CI take seconds to start Node. */
const START_MS = 60_000
/** How much of what a process has written to standard error is shown if it does not start. */
const MAX_ERRORS = 2000

/** A program of the demo, and where it runs. */
export interface DemoProgram {
  /** What it is called in errors. */
  readonly name: string
  /** The arguments of Node: the program and its own arguments. */
  readonly args: readonly string[]
  readonly cwd: string
  readonly env?: Readonly<Record<string, string>>
}

/** A process that the demo has started. It serves an address, which it prints as JSON: `{"url":"…"}`. */
export class DemoProcess {
  /** Resolves when the address is known; rejects if the process ends before. */
  readonly ready: Promise<void>
  /** Resolves with the signal or the exit code that ended the process, as the system reports it. */
  readonly ended: Promise<string>
  readonly #child: ChildProcess
  #url = ''

  constructor(child: ChildProcess, name: string, signal: AbortSignal) {
    this.#child = child
    child.stdin?.on('error', () => undefined) // the process may be gone before it has read anything
    this.ended = new Promise((resolve) => {
      child.once('error', (error) => resolve(error.message))
      child.once('close', (code, by) => resolve(by ?? `exit code ${code}`))
    })
    this.ready = this.#start(name, signal)
    this.ready.catch(() => undefined) // the caller awaits it, but may be stopped before
  }

  get url(): string {
    return this.#url
  }

  /** Sends SIGKILL, and resolves with what ended the process. */
  kill(): Promise<string> {
    this.#child.kill('SIGKILL')
    return this.ended
  }

  async #start(name: string, signal: AbortSignal): Promise<void> {
    const stop = (): void => void this.kill()
    signal.addEventListener('abort', stop)
    void this.ended.then(() => signal.removeEventListener('abort', stop))
    let errors = ''
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text))
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(resolve, START_MS, undefined)
    })
    const first = await Promise.race([addressOf(this.#child), this.ended, late])
    clearTimeout(timer)
    signal.throwIfAborted()
    if (typeof first === 'object') return void (this.#url = first.url)
    await this.kill()
    const what = first === undefined ? 'did not start' : 'ended before it was ready'
    const where = first === undefined ? ` within ${START_MS / 1000} seconds` : `: ${first}`
    throw new CommandError(`The process of ${name} ${what}${where}.`, {
      code: 'DEMO_START',
      hint: errors.trim().slice(-MAX_ERRORS) || 'The machine may be busy. Run the demo again.',
    })
  }
}

/** Starts a program with this Node. It ends when the signal aborts, or when its standard input closes with this process. */
export function startProcess(program: DemoProgram, signal: AbortSignal): DemoProcess {
  signal.throwIfAborted()
  const { name, args, cwd, env } = program
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...ownEnv(), ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  return new DemoProcess(child, name, signal)
}

/** The environment without settings of Skein, which are those of the user's own project. */
function ownEnv(): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('SKEIN_')),
  )
}

/** Resolves with the first line of JSON that has a `url`. */
function addressOf({ stdout }: ChildProcess): Promise<{ readonly url: string }> {
  return new Promise((resolve) => {
    let text = ''
    stdout?.setEncoding('utf8').on('data', (piece: string) => {
      text += piece
      for (const line of text.split('\n').slice(0, -1)) {
        const value = tryParseJson(line)
        if (isPlainObject(value) && typeof value['url'] === 'string') resolve({ url: value['url'] })
      }
    })
  })
}
