import { registerHooks } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** The files that modules of each folder import, as far as they are in the folder too. */
const imports = new Map<string, Set<string>>()

let rounds = 0

/**
 * Returns the number of the next reload, over all registries in this process: two registries of one folder must not
 * get the same modules.
 */
export function nextRound(): number {
  return ++rounds
}

/**
 * Imports a file. From round 1 (the first reload) on, the file and everything that it imports from the same
 * folder are read again: the number of the round is added to their URLs, so that Node treats them as new
 * modules. The old modules stay in memory, so this is for development only.
 */
export function freshImport(
  path: string,
  { folder, round }: { readonly folder: string; readonly round: number },
): Promise<Record<string, unknown>> {
  importsOf(folder) // begins to record the imports
  const url = pathToFileURL(path)
  if (round > 0) url.searchParams.set(PARAMETER, String(round))
  return import(/* @vite-ignore */ url.href) as Promise<Record<string, unknown>>
}

/**
 * Returns the files that modules of the folder import. The first call registers a hook that records them. The
 * hook also adds the number of the reload to imports within the folder, as the importing module has it. The
 * hook stays registered, because a tool may import a module long after it was loaded.
 */
export function importsOf(folder: string): ReadonlySet<string> {
  const earlier = imports.get(folder)
  if (earlier) return earlier
  const files = new Set<string>()
  imports.set(folder, files)
  const prefix = pathToFileURL(`${folder}/`).href
  const isInside = (url: string): boolean =>
    url.startsWith(prefix) && !url.slice(prefix.length).includes('node_modules/')
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const { parentURL = '' } = context
      // The import is recorded before it is resolved, so that a missing file is noticed when it is created.
      if (isInside(parentURL) && /^\.\.?\//.test(specifier)) {
        const url = new URL(specifier, parentURL)
        if (isInside(url.href)) files.add(fileURLToPath(url))
      }
      const target = nextResolve(specifier, context)
      const round = roundOf(parentURL)
      if (round === null || !isInside(target.url) || roundOf(target.url) !== null) return target
      const fresh = new URL(target.url)
      fresh.searchParams.set(PARAMETER, round)
      return { ...target, url: fresh.href }
    },
  })
  return files
}

function roundOf(url: string): string | null {
  return url.includes(PARAMETER) ? new URL(url).searchParams.get(PARAMETER) : null
}

/** The URL parameter that makes Node load a module again. */
const PARAMETER = 'skein-reload'
