import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isPlainObject } from '@skein/base'
import { stateFolder } from './places.ts'

/** What a server leaves in the folder, so that other commands find it. */
export interface ServerFile {
  readonly url: string
  readonly pid: number
}

const file = (): string => join(stateFolder(), 'server.json')

export function writeServerFile(server: ServerFile): void {
  mkdirSync(stateFolder(), { recursive: true, mode: 0o700 })
  writeFileSync(file(), `${JSON.stringify(server)}\n`, { mode: 0o600 })
}

/** Removes the file, if it is this process's. */
export function removeServerFile(): void {
  if (readServerFile()?.pid === process.pid) rmSync(file(), { force: true })
}

/** The server whose process still lives; whether it answers is another question. */
export function readServerFile(): ServerFile | undefined {
  try {
    const read: unknown = JSON.parse(readFileSync(file(), 'utf8'))
    if (!isPlainObject(read)) return undefined
    const { url, pid } = read
    return typeof url === 'string' && typeof pid === 'number' && isAlive(pid)
      ? { url, pid }
      : undefined
  } catch {
    return undefined // no server was here, or it was cut off while it wrote
  }
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' // somebody else's, but alive
  }
}

/** Whether one of ours answers there. */
export async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(2000) })
    return isPlainObject(await response.json()) && response.ok
  } catch {
    return false
  }
}
