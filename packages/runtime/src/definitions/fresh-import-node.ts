import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'

/** The parameter that makes a module's address new. */
const PARAMETER = 'skein-reload'
const folders = new Set<string>()
let rounds = 0

/** A round that nobody has had: two readers of one folder must not share what one has read. */
export function nextRound(): number {
  return ++rounds
}

/**
 * Imports a file. From round 1 on the file and all that it imports from the same folder are read anew:
 * the round is added to their addresses, which Node takes for other modules. What was loaded before
 * stays in memory, so this is for development.
 */
export function freshImport(
  path: string,
  { folder, round }: { readonly folder: string; readonly round: number },
): Promise<Record<string, unknown>> {
  const url = pathToFileURL(path)
  if (round > 0) {
    watchFolder(pathToFileURL(`${folder}/`).href)
    url.searchParams.set(PARAMETER, String(round))
  }
  return import(/* @vite-ignore */ url.href) as Promise<Record<string, unknown>>
}

/** Lets imports within a folder follow the round of the module that makes them. */
function watchFolder(prefix: string): void {
  if (folders.has(prefix)) return
  folders.add(prefix)
  // Stays registered: a tool may import something for the first time long after it was loaded.
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const resolved = nextResolve(specifier, context)
      const round = roundOf(context.parentURL)
      if (round === null || !resolved.url.startsWith(prefix)) return resolved
      if (resolved.url.includes('/node_modules/') || roundOf(resolved.url) !== null) return resolved
      const url = new URL(resolved.url)
      url.searchParams.set(PARAMETER, round)
      return { ...resolved, url: url.href }
    },
  })
}

function roundOf(url: string | undefined): string | null {
  return url?.includes(PARAMETER) ? new URL(url).searchParams.get(PARAMETER) : null
}
