import { readFileSync } from 'node:fs'
import { namesIn } from '../peers.ts'
import { linkedPeers } from '../test/groups.ts'
import { readJson, root, type Manifest } from '../workspace.ts'

/**
 * The group whose packages a program imports: the first that has all of them; undefined for a program that works after
 * `npm ci`. A test says its group in its name instead.
 */
export function groupOfProgram(file: string): string | undefined {
  const text = readFileSync(file, 'utf8')
  if (/from '[./]*(?:postgres-database|restate-server)\.ts'/.test(text)) return 'postgres'
  const imports = [...text.matchAll(/(?:from|import\() ?'((?:@[\w.-]+\/)?[\w.-]+)/g)].map(
    ([, name]) => name!,
  )
  const foreign = imports.filter((name) => foreignNames().has(name))
  if (foreign.length === 0) return undefined
  const order = ['sdks', 'browser', 'frameworks']
  return (
    order.find((group) => foreign.every((name) => namesIn(group).includes(name))) ?? 'frameworks'
  )
}

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
