import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { root, run } from './workspace.ts'

/**
 * Packages of other projects that only some tests or benches need. A folder `peers` holds a
 * package.json and a lock file of its own; what it names is installed into `.cache` when it is needed,
 * so the installation of the workspace does not grow with it.
 */
export interface Peers {
  readonly isInstalled: boolean
  /** Where they are, or would be, installed. */
  readonly folder: string
  /** Imports a package. The caller says what it expects: its types are not installed. */
  load<T>(name: string): Promise<T>
  /** The version of a package that is installed. */
  version(name: string): string
  /** Address of the module whose `load(name)` imports them, for a process of its own. */
  readonly loader: string
}

/** The peers that a folder (relative to the repository) names. */
export function peersOf(folder: string): Peers {
  const installed = cacheOf(folder)
  const loader = pathToFileURL(join(installed, 'load.js')).href
  return {
    isInstalled: existsSync(installed),
    loader,
    folder: installed,
    load: async <T>(name: string) => {
      const { load } = (await import(loader)) as { load: (name: string) => Promise<T> }
      return load(name)
    },
    version: (name) => {
      const file = join(installed, 'node_modules', name, 'package.json')
      return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version
    },
  }
}

/** Folders of peers that tests need; those of the benches are installed by `npm run bench`. */
export function testPeerFolders(): string[] {
  const folders = globSync('packages/*/test/peers', { cwd: root })
  return [...folders.map((path) => path.replaceAll('\\', '/')), 'docs/site', 'examples/migrate']
}

/** Installs the peers of a folder once, and says so. Returns what npm printed where it failed. */
export async function installPeers(folder: string): Promise<string | undefined> {
  const target = cacheOf(folder)
  if (existsSync(target)) return undefined
  const installing = `${target}-${process.pid}`
  rmSync(installing, { recursive: true, force: true })
  mkdirSync(installing, { recursive: true })
  for (const name of pins) cpSync(join(root, folder, name), join(installing, name))
  console.log(`installing what ${folder} names into ${relative(root, target)}`)
  const options = ['ci', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const { code, output } = await run('npm', options, { cwd: installing, quiet: true })
  if (code !== 0) {
    rmSync(installing, { recursive: true, force: true })
    return output
  }
  // An import resolves from the file it stands in, so the loader must live beside the peers.
  writeFileSync(join(installing, 'load.js'), 'export const load = (name) => import(name)\n')
  if (existsSync(target)) rmSync(installing, { recursive: true, force: true })
  else renameSync(installing, target)
  return undefined
}

const pins = ['package.json', 'package-lock.json']

/** Where the peers are at their pinned versions; a change of the pins is another folder. */
function cacheOf(folder: string): string {
  const hash = createHash('sha256')
  for (const name of pins) hash.update(readFileSync(join(root, folder, name)))
  const name = folder.replaceAll('/', '-')
  return join(root, '.cache', `${name}-${hash.digest('hex').slice(0, 12)}`)
}
