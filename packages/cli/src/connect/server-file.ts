import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'
import { dirname, join, resolve } from 'node:path'
import { isPlainObject } from '@skein/base'

/** Returns the folder that contains the store, its keys and the address of the running server. */
export function stateFolder(): string {
  return resolve('.skein')
}

/** Returns the path of this folder's database. */
export function storeFile(): string {
  return join(stateFolder(), 'skein.db')
}

/**
 * Returns the folder of the definitions: the named folder, this folder if it has `agents/`, or the examples.
 */
export function definitionsFolder(named: string | undefined): string {
  if (named !== undefined) return resolve(named)
  if (existsSync(resolve('agents'))) return resolve('.')
  // What is published is JavaScript and has the examples with it; the sources run in a clone of the
  // repository, which has them in its `examples/`.
  return import.meta.filename.endsWith('.js')
    ? join(packageFolder(), 'dist', 'example-agents')
    : join(packageFolder(), '..', '..', 'examples', 'agents')
}

/** Returns the folder of this package. Its built code lies in chunks, whose depth is the bundler's choice. */
function packageFolder(): string {
  return dirname(findPackageJSON(import.meta.url)!)
}

/** The contents of the file that `skein dev` writes, so that other commands find the server. */
export interface ServerFile {
  readonly url: string
  readonly pid: number
}

const file = (): string => join(stateFolder(), 'server.json')

/** Announces the server of this process to other commands. */
export function writeServerFile(server: ServerFile): void {
  mkdirSync(stateFolder(), { recursive: true, mode: 0o700 })
  writeFileSync(file(), `${JSON.stringify(server)}\n`, { mode: 0o600 })
}

/** Removes the server file, if this process wrote it. */
export function removeServerFile(): void {
  if (readServerFile()?.pid === process.pid) rmSync(file(), { force: true })
}

/** Returns the server of this folder if its process is alive; `isAnswering` checks whether it responds. */
export function readServerFile(): ServerFile | undefined {
  try {
    const read: unknown = JSON.parse(readFileSync(file(), 'utf8'))
    if (!isPlainObject(read)) return undefined
    const { url, pid } = read
    return typeof url === 'string' && typeof pid === 'number' && isAlive(pid)
      ? { url, pid }
      : undefined
  } catch {
    return undefined // no server ran here, or it was killed while it wrote the file
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0) // signal 0 only checks whether the process exists
  } catch (error) {
    // EPERM: the process exists, but belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Whether a server of Skein responds at the address. */
export async function isAnswering(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2000) })
    return isPlainObject(await response.json()) && response.ok
  } catch {
    return false
  }
}
