import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  globSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { basename, dirname, join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { linkedPeers } from './test/groups.ts'
import { readJson, root, run, type Manifest } from './workspace.ts'

/**
 * Packages of other projects that only some tests and scripts need. Each folder of `peers/` names those of one
 * purpose, and one lock file pins all of them. A folder is installed into `.cache/peers` when it is needed, so the
 * installation of the workspace does not grow with it.
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

const source = join(root, 'peers')
const cache = join(root, '.cache', 'peers')

/** The peers that a folder of `peers/` names. */
export function peersOf(name: string): Peers {
  const installed = folderOf(name)
  const loader = pathToFileURL(join(installed, name, 'load.js')).href
  return {
    isInstalled: existsSync(installed),
    loader,
    folder: installed,
    load: async <T>(wanted: string) => {
      const { load } = (await import(loader)) as { load: (name: string) => Promise<T> }
      return load(wanted)
    },
    version: (wanted) =>
      (readJson(join(packageIn(name, wanted), 'package.json')) as Manifest).version ?? '',
  }
}

/** Installs the peers of a folder once, and says so. Returns what npm printed where it failed. */
export async function installPeers(name: string): Promise<string | undefined> {
  const target = folderOf(name)
  if (existsSync(target)) return undefined
  const installing = `${target}-${process.pid}`
  rmSync(installing, { recursive: true, force: true })
  mkdirSync(cache, { recursive: true })
  cpSync(source, installing, {
    recursive: true,
    filter: (path) => basename(path) !== 'node_modules',
  })
  console.log(`installing peers/${name} into ${relative(root, target)}`)
  const options = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
  const { code, output } = await run('npm', ['ci', `--workspace=${name}`, ...options], {
    cwd: installing,
    quiet: true,
  })
  if (code !== 0) {
    rmSync(installing, { recursive: true, force: true })
    return output
  }
  prune(installing)
  if (linkedPeers.has(name)) useRootPackages(join(installing, 'node_modules'))
  shareFiles(join(installing, 'node_modules'))
  // An import resolves from the file it is in, so the loader must be next to the peers.
  writeFileSync(join(installing, name, 'load.js'), 'export const load = (name) => import(name)\n')
  if (existsSync(target)) rmSync(installing, { recursive: true, force: true })
  else renameSync(installing, target)
  for (const other of readdirSync(cache))
    if (/^-[0-9a-f]{12}$/.test(other.slice(name.length)) && other.startsWith(name))
      if (join(cache, other) !== target)
        rmSync(join(cache, other), { recursive: true, force: true })
  return undefined
}

/**
 * Links the packages that a folder of `peers/` names into `node_modules`, where they are not a part of the workspace's
 * own installation: Vitest, Node, esbuild and tsc then find them from any file.
 */
export function linkPeers(name: string): void {
  for (const wanted of namesIn(name)) {
    const link = join(root, 'node_modules', wanted)
    const target = packageIn(name, wanted)
    if (!existsSync(target)) continue // optional, and not for this platform
    const found = lstatSync(link, { throwIfNoEntry: false })
    if (found && !found.isSymbolicLink()) continue
    if (existsSync(link) && realpathSync(link) === realpathSync(target)) continue
    rmSync(link, { force: true })
    mkdirSync(dirname(link), { recursive: true })
    symlinkSync(target, link, 'junction')
  }
}

/** Packages that a folder of `peers/` names. */
export function namesIn(name: string): string[] {
  const { dependencies, optionalDependencies } = readJson(
    join(source, name, 'package.json'),
  ) as Manifest
  return Object.keys({ ...dependencies, ...optionalDependencies })
}

/** All folders of `peers/`. */
export function peerNames(): string[] {
  return globSync('*/package.json', { cwd: source }).map(dirname).toSorted()
}

/** A package that both have at the same version becomes one: two copies of React or Zod do not know each other. */
function useRootPackages(modules: string): void {
  for (const path of globSync(['*/package.json', '@*/*/package.json'], { cwd: modules })) {
    const name = dirname(path)
    const ours = join(root, 'node_modules', name)
    const found = lstatSync(ours, { throwIfNoEntry: false })
    if (!found?.isDirectory() || versionIn(ours) !== versionIn(join(modules, name))) continue
    // A package that brings copies of its own would lose them.
    if (existsSync(join(modules, name, 'node_modules'))) continue
    rmSync(join(modules, name), { recursive: true })
    symlinkSync(ours, join(modules, name), 'junction')
  }
}

function versionIn(folder: string): string | undefined {
  return (readJson(join(folder, 'package.json')) as Manifest).version
}

/**
 * Deletes what nothing reads here, half of the space: source maps and the sources they lead to, pages, headers of a
 * Node that only runs programs, builds for browsers, a Java program next to the native one, image tools.
 */
function prune(folder: string): void {
  const whole = [
    'node-*/include',
    'recheck-jar',
    'recheck/lib/browser.js',
    'better-sqlite3',
    '@cedar-policy/cedar-wasm/{esm,web}',
    '@openai/agents-realtime/dist/bundle',
    '@img',
    'sharp',
    'next/dist/compiled/*-experimental',
    'next/dist/compiled/next-server/*.dev.js',
  ]
  for (const path of globSync(whole, { cwd: join(folder, 'node_modules') }))
    rmSync(join(folder, 'node_modules', path), { recursive: true })
  for (const file of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const isSource = /[/\\]src[/\\].*\.[cm]?tsx?$/.test(file) && !/\.d\.[cm]?ts$/.test(file)
    if (isSource || /\.(?:map|md|flow|d\.cts)$/.test(file))
      rmSync(join(folder, file), { force: true })
  }
}

/** A package that another folder has at the same version takes no space: their files are hard links. */
function shareFiles(modules: string): void {
  for (const path of globSync(['*/package.json', '@*/*/package.json'], { cwd: modules })) {
    const name = dirname(path)
    const own = join(modules, name)
    if (lstatSync(own).isSymbolicLink()) continue
    const twin = globSync(`*/node_modules/${name}`, { cwd: cache })
      .map((folder) => join(cache, folder))
      .find(
        (folder) =>
          folder !== own &&
          existsSync(join(folder, 'package.json')) &&
          !lstatSync(folder).isSymbolicLink() &&
          versionIn(folder) === versionIn(own),
      )
    if (twin === undefined) continue
    for (const file of readdirSync(own, { recursive: true, encoding: 'utf8' })) {
      const [ours, theirs] = [join(own, file), join(twin, file)]
      if (!lstatSync(ours).isFile() || !lstatSync(theirs, { throwIfNoEntry: false })?.isFile())
        continue
      if (!readFileSync(ours).equals(readFileSync(theirs))) continue
      rmSync(ours)
      linkSync(theirs, ours)
    }
  }
}

/** Where a package is: npm puts it next to the folder that names it if the others need another version. */
function packageIn(name: string, wanted: string): string {
  const installed = folderOf(name)
  const own = join(installed, name, 'node_modules', wanted)
  return existsSync(own) ? own : join(installed, 'node_modules', wanted)
}

/** Where the peers are at their pinned versions; a change of the pins is another folder. */
function folderOf(name: string): string {
  const hash = createHash('sha256')
  for (const file of [join(name, 'package.json'), 'package-lock.json'])
    hash.update(readFileSync(join(source, file)))
  return join(cache, `${name}-${hash.digest('hex').slice(0, 12)}`)
}
