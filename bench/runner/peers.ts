import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { run } from '../../scripts/workspace.ts'

const source = join(import.meta.dirname, '..', 'peers')
const cache = join(import.meta.dirname, '..', '.cache')

/** The folder of the peers at their pinned versions; a change of the pins is another folder. */
function peersFolder(): string {
  const hash = createHash('sha256')
  for (const name of ['package.json', 'package-lock.json'])
    hash.update(readFileSync(join(source, name)))
  return join(cache, `peers-${hash.digest('hex').slice(0, 12)}`)
}

/** Installs the peers once; the root installation never does. */
export async function installPeers(): Promise<void> {
  const folder = peersFolder()
  if (existsSync(folder)) return
  const installing = `${folder}-installing`
  rmSync(installing, { recursive: true, force: true })
  mkdirSync(installing, { recursive: true })
  cpSync(source, installing, { recursive: true })
  console.log('installing peers into bench/.cache')
  const { code, output } = await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'], {
    cwd: installing,
    quiet: true,
  })
  if (code !== 0) throw new Error(`The peers cannot be installed:\n${output}`)
  // An import resolves from the file it stands in, so the loader must live beside the peers.
  writeFileSync(join(installing, 'load.js'), 'export const load = (name) => import(name)\n')
  renameSync(installing, folder)
}

/** Imports a peer from the cache. The caller says what it expects: the types are not installed here. */
export async function peer<T>(name: string): Promise<T> {
  const loader = pathToFileURL(join(peersFolder(), 'load.js')).href
  const { load } = (await import(loader)) as { load: (name: string) => Promise<T> }
  return load(name)
}
