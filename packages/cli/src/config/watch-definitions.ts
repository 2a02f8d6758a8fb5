import { existsSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import type { DiscoveredRegistry } from '@skein/runtime'

/**
 * Editors write a file in several steps, so changes are reported only after this time without another change.
 */
const QUIET_MS = 60
/** Files and folders whose names begin with a dot, installed packages and built files are not watched. */
const IGNORED = /^(?:\.|node_modules$|dist$)/

/**
 * Reports the names of changed files that the definitions use, also if an editor saves a file by renaming
 * another one. Temporary files of editors are not reported, because no definition imports them.
 */
export async function watchDefinitions(
  registry: DiscoveredRegistry,
  changed: (files: readonly string[]) => void,
): Promise<{ close(): Promise<void> }> {
  const { watch } = await import('chokidar')
  const names = new Set<string>()
  /** Files that were created since the last report. If such a file is removed again, nothing is reported. */
  const newFiles = new Set<string>()
  let timer: NodeJS.Timeout | undefined
  const nameOf = (path: string): string => relative(registry.folder, path).split(sep).join('/')
  const watcher = watch(registry.folder, {
    ignoreInitial: true,
    ignored: (path) =>
      nameOf(path)
        .split('/')
        .some((part) => IGNORED.test(part)),
  })
  watcher.on('all', (event, path) => {
    if (!registry.reads(path)) return
    const name = nameOf(path)
    if (event === 'add') newFiles.add(name)
    if (event === 'unlink' && newFiles.delete(name)) names.delete(name)
    else names.add(name)
    clearTimeout(timer)
    timer = setTimeout(() => {
      const isThere = (file: string): boolean => existsSync(join(registry.folder, file))
      const files = [...names]
        .toSorted()
        .map((file) => (isThere(file) ? file : `${file} (removed)`))
      names.clear()
      newFiles.clear()
      if (files.length > 0) changed(files)
    }, QUIET_MS)
  })
  // A folder that cannot be read is not watched; an error is reported when definitions in it are loaded.
  watcher.on('error', () => undefined)
  await new Promise<void>((resolve) => watcher.once('ready', resolve))
  return {
    async close() {
      clearTimeout(timer)
      await watcher.close()
    },
  }
}
