import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { namesIn } from '../peers.ts'
import { linkedPeers } from '../test/groups.ts'
import { readJson, root, type Manifest } from '../workspace.ts'

/**
 * The group whose packages a program imports, itself or through files of its folder: the first that has all of them;
 * undefined for a program that works after `npm ci`. A test says its group in its name instead.
 */
export function groupOfProgram(file: string): string | undefined {
  const text = readFileSync(file, 'utf8')
  if (/from '[./]*(?:postgres-database|restate-server)\.ts'/.test(text)) return 'postgres'
  const foreign = [...importsOf(file)].filter((name) => foreignNames().has(name))
  if (foreign.length === 0) return undefined
  const order = ['sdks', 'browser', 'frameworks']
  return (
    order.find((group) => foreign.every((name) => namesIn(group).includes(name))) ?? 'frameworks'
  )
}

/** The packages that a file imports, with those of the files of its folder that it imports. */
function importsOf(file: string, seen = new Set<string>()): ReadonlySet<string> {
  seen.add(file)
  const text = readFileSync(file, 'utf8')
  const names = new Set(Array.from(text.matchAll(PACKAGE), ([, name]) => name!))
  for (const [, path] of text.matchAll(NEIGHBOUR)) {
    const neighbour = join(dirname(file), path!)
    if (seen.has(neighbour) || !existsSync(neighbour)) continue
    for (const name of importsOf(neighbour, seen)) names.add(name)
  }
  return names
}

const PACKAGE = /(?:from|import\() ?'((?:@[\w.-]+\/)?[\w.-]+)/g
const NEIGHBOUR = /(?:from|import\() ?'(\.\/[\w.-]+\.tsx?)'/g

let foreignCache: ReadonlySet<string> | undefined

/** What only `peers/` names. */
function foreignNames(): ReadonlySet<string> {
  if (foreignCache) return foreignCache
  const { packages } = readJson(`${root}/package-lock.json`) as {
    packages: Record<string, Manifest>
  }
  const own = new Set(Object.keys(packages).map((path) => path.replace(/^node_modules\//, '')))
  foreignCache = new Set([...linkedPeers].flatMap(namesIn).filter((name) => !own.has(name)))
  return foreignCache
}
