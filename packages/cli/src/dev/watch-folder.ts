import { readdirSync, watch, type FSWatcher } from 'node:fs'
import { join } from 'node:path'

/** Programs write a file in several steps. */
const QUIET_MS = 60
const IGNORED = /^(?:\.|node_modules$|dist$)/

/**
 * Tells of changes beneath a folder once they have calmed down, with the names that changed. What is
 * installed, built or hidden does not count.
 */
export function watchFolder(
  folder: string,
  changed: (files: readonly string[]) => void,
): { close(): void } {
  const watchers = new Map<string, FSWatcher>()
  const names = new Set<string>()
  let timer: NodeJS.Timeout | undefined

  const note = (name: string): void => {
    if (name.split(/[\\/]/).some((part) => IGNORED.test(part))) return
    names.add(name)
    clearTimeout(timer)
    timer = setTimeout(() => {
      const files = [...names].toSorted()
      names.clear()
      follow()
      changed(files)
    }, QUIET_MS)
  }
  /** One watcher per folder at the top, so that nobody has to watch node_modules. */
  const follow = (): void => {
    const found = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory() && !IGNORED.test(entry.name))
      .map(({ name }) => name)
    for (const [name, watcher] of watchers)
      if (name !== '' && !found.includes(name)) {
        watcher.close()
        watchers.delete(name)
      }
    for (const name of found)
      if (!watchers.has(name))
        watchers.set(
          name,
          open(join(folder, name), true, (file) => note(`${name}/${file}`)),
        )
  }

  watchers.set('', open(folder, false, note))
  follow()
  return {
    close() {
      clearTimeout(timer)
      for (const watcher of watchers.values()) watcher.close()
    },
  }
}

function open(path: string, recursive: boolean, note: (name: string) => void): FSWatcher {
  const watcher = watch(path, { recursive }, (_, name) => note(name ?? ''))
  watcher.on('error', () => watcher.close()) // the folder is gone; its parent tells
  return watcher
}
