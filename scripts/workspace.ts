import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** The repository this script belongs to. */
export const root: string = join(import.meta.dirname, '..')

/** Packages that may depend on nothing but our own packages below them. */
export const zeroDependencyPackages: readonly string[] = [
  '@skein/base',
  '@skein/ai',
  '@skein/agents',
  '@skein/threads',
  '@skein/governance',
]

/** The fields of a package.json that the scripts read. */
export interface Manifest {
  readonly name: string
  readonly version?: string
  readonly private?: boolean
  readonly engines?: { readonly node?: string }
  readonly exports?: Exports
  readonly imports?: Record<string, Exports>
  readonly bin?: Record<string, string>
  readonly dependencies?: Record<string, string>
  readonly devDependencies?: Record<string, string>
  readonly peerDependencies?: Record<string, string>
  readonly peerDependenciesMeta?: Record<string, { readonly optional?: boolean }>
  readonly optionalDependencies?: Record<string, string>
  readonly overrides?: Record<string, unknown>
}

/** A target, or conditions that lead to one. */
export type Exports = string | null | { readonly [key: string]: Exports }

export interface WorkspacePackage {
  readonly name: string
  /** Absolute folder. */
  readonly folder: string
  readonly manifest: Manifest
}

/** Every package that exists under `packages/` now; a folder appears when its work starts. */
export function findPackages(workspace: string = root): WorkspacePackage[] {
  const packages = join(workspace, 'packages')
  if (!existsSync(packages)) return []
  return readdirSync(packages)
    .toSorted()
    .map((name) => join(packages, name))
    .filter((folder) => existsSync(join(folder, 'package.json')))
    .map((folder) => {
      const manifest = readJson(join(folder, 'package.json')) as Manifest
      return { name: manifest.name, folder, manifest }
    })
}

export function readJson(file: string): unknown {
  return JSON.parse(readFileSync(file, 'utf8'))
}

export interface RunOptions {
  readonly cwd?: string
  readonly env?: NodeJS.ProcessEnv
  /** Collects output instead of showing it. */
  readonly quiet?: boolean
  /** Ends the command after this time; its code is then -1. */
  readonly timeoutMs?: number
}

export interface RunResult {
  readonly code: number
  /** Standard output and error in order of arrival; empty unless quiet. */
  readonly output: string
}

/** Runs a command with the workspace's own binaries (Node 24 among them) first on the path. */
export function run(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<RunResult> {
  const cwd = options.cwd ?? root
  const bin = join(cwd, 'node_modules', '.bin')
  const path = `${existsSync(bin) ? bin : join(root, 'node_modules', '.bin')}${delimiter}${process.env['PATH']}`
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd,
      env: { ...process.env, ...options.env, PATH: path },
      stdio: options.quiet ? ['ignore', 'pipe', 'pipe'] : ['ignore', 'inherit', 'inherit'],
      // Windows finds node_modules/.bin/*.cmd only through a shell.
      shell: process.platform === 'win32',
    })
    let output = ''
    let timedOut = false
    child.stdout?.on('data', (chunk: Buffer) => (output += chunk))
    child.stderr?.on('data', (chunk: Buffer) => (output += chunk))
    const timer =
      options.timeoutMs === undefined
        ? undefined
        : setTimeout(() => {
            timedOut = true
            child.kill('SIGKILL')
          }, options.timeoutMs)
    child.on('error', reject)
    child.on('close', (code) => {
      clearTimeout(timer)
      resolve({ code: timedOut ? -1 : (code ?? 1), output })
    })
  })
}
