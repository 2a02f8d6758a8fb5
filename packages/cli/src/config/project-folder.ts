import { dirname, join, resolve } from 'node:path'
import { existsSync, statSync } from 'node:fs'

/** The names of configuration files, in the order in which they are looked for. */
export const CONFIG_FILES = [
  'skein.config.ts',
  'skein.config.js',
  'skein.config.mjs',
  'skein.config.json',
] as const

/** The folder of a project that has its store, its keys and the address of the running server. */
export const STATE_FOLDER = '.skein'

/**
 * Returns the folder of the project: this one if it has `agents/`, else the nearest one upwards that has a
 * configuration or a store; without one, this one. What belongs to another user is passed over, because a
 * configuration is a program: in a shared folder such as /tmp anybody could put one.
 */
export function projectFolder(
  from: string = resolve('.'),
  user: number | undefined = process.getuid?.(),
): string {
  if (existsSync(join(from, 'agents'))) return from
  const isOwn = (path: string): boolean => {
    const owner = statSync(path, { throwIfNoEntry: false })?.uid
    return owner !== undefined && (user === undefined || owner === user)
  }
  for (let folder = from; ; folder = dirname(folder)) {
    if ([...CONFIG_FILES, STATE_FOLDER].some((name) => isOwn(join(folder, name)))) return folder
    if (dirname(folder) === folder) return from
  }
}

/** Returns the folder that contains the store, its keys and the address of the running server. */
export function stateFolder(): string {
  return join(projectFolder(), STATE_FOLDER)
}

/** Returns the path of this folder's database. */
export function storeFile(): string {
  return join(stateFolder(), 'skein.db')
}
