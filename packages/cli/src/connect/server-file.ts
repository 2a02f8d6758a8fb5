import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isPlainObject } from '@skein/base'
import { stateFolder } from '../config/project-folder.ts'

/** The contents of the file that `skein dev` writes, so that other commands find its server. */
export interface ServerFile {
  readonly url: string
  readonly pid: number
}

const serverFile = (): string => join(stateFolder(), 'server.json')

/** Writes the file by which other commands find the server of this process. */
export function writeServerFile(server: ServerFile): void {
  mkdirSync(stateFolder(), { recursive: true, mode: 0o700 })
  writeFileSync(serverFile(), `${JSON.stringify(server)}\n`, { mode: 0o600 })
}

/** Removes the server file, if this process wrote it. */
export function removeServerFile(): void {
  if (readServerFile()?.pid === process.pid) rmSync(serverFile(), { force: true })
}

/** Returns the server of this folder if its process is alive. Whether it responds is checked by `isAnswering`. */
export function readServerFile(): ServerFile | undefined {
  try {
    const content: unknown = JSON.parse(readFileSync(serverFile(), 'utf8'))
    if (!isPlainObject(content)) return undefined
    const { url, pid } = content
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
