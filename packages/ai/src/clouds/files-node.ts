import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'

/** Reads a file of credentials; undefined if there is none. `~` is the home of the user. */
export async function readCredentialFile(path: string): Promise<string | undefined> {
  const file = path.startsWith('~/') ? join(homedir(), path.slice(2)) : path
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
