import { spawn, type ChildProcessByStdio } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable, Writable } from 'node:stream'
import { onTestFinished } from 'vitest'

const root = join(import.meta.dirname, '..', '..', '..')
export const skeinBin: string = join(import.meta.dirname, '..', 'bin', 'skein.js')

/** Agents that misbehave in every way that has an exit code. */
export const badAgents: string = join(import.meta.dirname, 'agents')
export const exampleAgents: string = join(root, 'examples', 'agents')

/** An empty folder with the packages of the workspace in reach; gone after the test. */
export function tempFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'skein-cli-'))
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export interface SpawnOptions {
  readonly cwd: string
  readonly input?: string
  readonly env?: Readonly<Record<string, string>>
  /** Another program than `skein`. It may start others, and signals reach all of them. */
  readonly program?: string
  /** Whether the reader of the output goes away immediately, as `| head -0` does. */
  readonly closesStdout?: boolean
}

/** A command that runs. It is killed when the test ends. */
export class Running {
  stdout = ''
  stderr = ''
  readonly child: ChildProcessByStdio<Writable, Readable, Readable>
  readonly ended: Promise<Ended>
  readonly #watchers = new Set<() => void>()
  readonly #isGroup: boolean
  #isOver = false

  constructor(args: readonly string[], { cwd, input, env, program, closesStdout }: SpawnOptions) {
    const words = program === undefined ? [process.execPath, skeinBin, ...args] : [program, ...args]
    this.#isGroup = program !== undefined
    this.child = spawn(words[0]!, words.slice(1), {
      cwd,
      env: { ...ownEnv(), ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: this.#isGroup,
    })
    this.child.stdout.setEncoding('utf8').on('data', (text: string) => this.#add('stdout', text))
    this.child.stderr.setEncoding('utf8').on('data', (text: string) => this.#add('stderr', text))
    if (closesStdout) this.child.stdout.destroy()
    this.child.stdin.on('error', () => undefined) // it may end without reading
    this.child.stdin.end(input ?? '')
    this.ended = new Promise((resolve, reject) => {
      this.child.once('error', reject)
      this.child.once('close', (code) => {
        this.#isOver = true
        resolve({ code, stdout: this.stdout, stderr: this.stderr })
        this.#tell()
      })
    })
    onTestFinished(async () => {
      this.signal('SIGKILL')
      await this.ended
    })
  }

  /** Resolves once the output contains this; fails when the command ends before. */
  async until(stream: 'stdout' | 'stderr', wanted: string | RegExp): Promise<void> {
    for (;;) {
      const text = this[stream]
      if (typeof wanted === 'string' ? text.includes(wanted) : wanted.test(text)) return
      if (this.#isOver)
        throw new Error(`It ended without ${wanted}:\n${this.stdout}\n${this.stderr}`)
      await new Promise<void>((resolve) => this.#watchers.add(resolve))
    }
  }

  signal(name: 'SIGINT' | 'SIGTERM' | 'SIGKILL'): void {
    if (!this.#isGroup) return void this.child.kill(name)
    try {
      process.kill(-this.child.pid!, name)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error // all of them have ended
    }
  }

  #add(stream: 'stdout' | 'stderr', text: string): void {
    this[stream] += text
    this.#tell()
  }

  #tell(): void {
    for (const watcher of this.#watchers) watcher()
    this.#watchers.clear()
  }
}

/** Runs a command to its end. */
export function skein(args: readonly string[], options: SpawnOptions): Promise<Ended> {
  return new Running(args, options).ended
}

/** Starts `dev` on a free port and waits for its three lines. */
export async function startDev(
  args: readonly string[],
  options: SpawnOptions,
): Promise<{ readonly running: Running; readonly url: string }> {
  const running = new Running(['dev', '--port', '0', ...args], options)
  const hasKey = options.env?.['SKEIN_SECRET_KEY'] !== undefined
  await running.until('stdout', hasKey ? /^store .*\n/m : /^secrets .*\n/m)
  return { running, url: /http:\/\/\S+/.exec(running.stdout)![0] }
}

/** Without keys of vendors, and without what a terminal or a CI adds. */
export function ownEnv(): NodeJS.ProcessEnv {
  const dropped = /_API_KEY$|^SKEIN_|^NO_COLOR$|^FORCE_COLOR$|^NODE_OPTIONS$|^VITEST/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !dropped.test(name)))
}
