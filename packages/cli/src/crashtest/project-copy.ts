import { constants, cpSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { basename, dirname, join, sep } from 'node:path'
import { usageError } from '../terminal/command.ts'

/** What a copy leaves out: packages, which are linked, and what programs do not read. */
const LEFT_OUT = new Set(['node_modules', '.git'])

/**
 * Copies a folder, so that each crash point begins with the files of the original. Packages are not copied: the copy has
 * links to the `node_modules` of the folder, of those above it and of those in it.
 */
export function copyProject(folder: string, target: string): string {
  const above = ancestorsWithPackages(folder)
  // The copy is as deep as there are folders with packages above it, so that Node finds them in the same order.
  let place = target
  for (const modules of above.toReversed()) {
    mkdirSync(place, { recursive: true })
    link(modules, join(place, 'node_modules'))
    place = join(place, basename(dirname(modules)) || 'root')
  }
  const copy = join(place, basename(folder) || 'root')
  mkdirSync(dirname(copy), { recursive: true })
  cpSync(folder, copy, {
    recursive: true,
    verbatimSymlinks: true,
    mode: constants.COPYFILE_FICLONE,
    filter: (path) => !LEFT_OUT.has(basename(path)) && !path.startsWith(`${target}${sep}`),
  })
  for (const modules of packagesIn(folder)) link(modules, join(copy, modules.slice(folder.length)))
  return copy
}

/** The most files of a folder. Each crash point copies all of them. */
const MAX_FILES = 10_000

/** Throws if a folder is too large to be copied for each crash point, e.g. a home folder. */
export function checkSize(folder: string): void {
  let count = 0
  const add = (place: string): void => {
    for (const entry of readdirSync(place, { withFileTypes: true })) {
      if (LEFT_OUT.has(entry.name)) continue
      count += 1
      if (count > MAX_FILES)
        throw usageError(
          `${folder} has more than ${MAX_FILES} files.`,
          'Each crash point copies them. Name the folder of the program with --folder.',
        )
      if (entry.isDirectory()) add(join(place, entry.name))
    }
  }
  add(folder)
}

export function removeCopy(folder: string): void {
  // A process that was killed a moment ago may still hold a file open; Windows then refuses to remove it.
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
}

/** The `node_modules` of the folders above a folder, the nearest first. */
function ancestorsWithPackages(folder: string): string[] {
  const all: string[] = []
  for (let place = dirname(folder); ; place = dirname(place)) {
    const modules = join(place, 'node_modules')
    if (existsSync(modules)) all.push(modules)
    if (dirname(place) === place) return all
  }
}

/** The `node_modules` in a folder and below it. */
function packagesIn(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.name === 'node_modules') return [path]
    return entry.isDirectory() && !LEFT_OUT.has(entry.name) ? packagesIn(path) : []
  })
}

function link(target: string, path: string): void {
  if (!existsSync(path)) symlinkSync(target, path, 'junction')
}
