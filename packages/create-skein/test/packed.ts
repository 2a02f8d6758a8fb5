import { createHash } from 'node:crypto'
import { existsSync, globSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { copyWorkspace } from '../../../scripts/workspace-copy.ts'
import { readJson, root, run } from '../../../scripts/workspace.ts'

/** What goes into the packages, or decides how they are built. */
const inputs = [
  'packages/*/{src,bin,templates,deploy}/**/*',
  'packages/*/{package.json,tsconfig.json,vite.config.ts,README.md,LICENSE}',
  'packages/cli/demo/**/*',
  'examples/agents/**/*',
  'scripts/build{.ts,/**/*}',
  'tsconfig.base.json',
]

/**
 * Builds and packs every package in a copy of the repository, so that the working tree and tests next to this one
 * are not touched. The tarballs are kept under `.cache` until something that goes into them changes.
 */
async function packedPackages(): Promise<string> {
  const hash = createHash('sha256')
  const files = globSync(inputs, { cwd: root, withFileTypes: true }).filter((one) => one.isFile())
  for (const path of files.map((one) => join(one.parentPath, one.name)).toSorted())
    if (!/\.test(-d)?\.tsx?$/.test(path))
      hash.update(path.slice(root.length)).update(readFileSync(path))
  const folder = join(root, '.cache', `packed-${hash.digest('hex').slice(0, 12)}`)
  if (existsSync(folder)) return folder
  for (const old of globSync('.cache/packed-*', { cwd: root }))
    rmSync(join(root, old), { recursive: true, force: true })
  const copy = copyWorkspace((path) =>
    /^(?:packages|examples|scripts|conformance|peers|[^/]*$)/.test(path),
  )
  // Next to its final place, because a folder cannot be moved to another disk.
  const packing = `${folder}-${process.pid}`
  try {
    const options = { cwd: copy.folder, quiet: true, timeoutMs: 300_000 }
    const { code, output } = await run('node', ['scripts/build.ts', '--pack', packing], options)
    if (code !== 0) throw new Error(`The packages cannot be packed:\n${output}`)
    if (!existsSync(folder)) renameSync(join(packing, 'tarballs'), folder)
  } finally {
    copy.remove()
    rmSync(packing, { recursive: true, force: true })
  }
  return folder
}

/** A registry of npm on loopback. */
export interface Registry {
  readonly url: string
  close(): void
}

/** One version of a package, as the registry describes it to npm. */
interface Version {
  readonly name: string
  readonly version: string
  readonly dist: { readonly integrity: string; readonly tarball: string }
}

/**
 * Starts a registry that has our packages as they were just packed, and of other people's exactly the versions of
 * the lock files. npm finds their contents by `integrity` in its cache, where the installation of this workspace
 * has put them; it is sent to the registry that is configured for the rest.
 */
export async function startRegistry(): Promise<Registry> {
  const tarballs = await packedPackages()
  const { output } = await run('npm', ['config', 'get', 'registry'], { quiet: true })
  const upstream = /https?:\S+/.exec(output)?.[0] ?? 'https://registry.npmjs.org/'
  const known = new Map<string, Map<string, Version>>()
  const own = new Map<string, string>()
  let url = ''
  const add = (entry: Omit<Version, 'dist'>, integrity: string): string => {
    const { name, version } = entry
    const path = `/${name}/-/${name.split('/').at(-1)}-${version}.tgz`
    const versions = known.get(name) ?? new Map<string, Version>()
    known.set(name, versions.set(version, { ...entry, dist: { integrity, tarball: url + path } }))
    return path
  }

  const server = createServer(({ url: asked = '' }, response) => {
    const path = decodeURIComponent(asked.split('?')[0]!)
    const versions = known.get(path.slice(1))
    const tarball = own.get(path)
    if (tarball !== undefined) send(response, 200, readFileSync(tarball))
    else if (versions) send(response, 200, packument(versions))
    else if (path.includes('/-/')) {
      response.setHeader('location', new URL(path.slice(1), upstream).href)
      send(response, 302)
    } else send(response, 404, '{"error":"not found"}') // npm also asks for optional peers
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  for (const file of ['package-lock.json', 'peers/package-lock.json']) {
    const { packages } = readJson(join(root, file)) as { packages: Record<string, Locked> }
    for (const [path, { name = path.split('node_modules/').at(-1)!, ...entry }] of Object.entries(
      packages,
    ))
      if (entry.integrity !== undefined) add({ ...entry, name }, entry.integrity)
  }
  for (const tarball of globSync('*/*.tgz', { cwd: tarballs })) {
    const file = join(tarballs, tarball)
    const { output: manifest } = await run('tar', ['-xzOf', file, 'package/package.json'], {
      quiet: true,
    })
    const integrity = `sha512-${createHash('sha512').update(readFileSync(file)).digest('base64')}`
    own.set(add(JSON.parse(manifest) as Version, integrity), file)
  }
  return { url, close: () => server.close() }
}

/** An entry of a lock file: a manifest without what npm does not need to install it. */
interface Locked {
  readonly name?: string
  readonly version: string
  readonly integrity?: string
}

function packument(versions: ReadonlyMap<string, Version>): string {
  const [{ name }] = [...versions.values()] as [Version]
  const latest = [...versions.keys()].at(-1)
  return JSON.stringify({ name, 'dist-tags': { latest }, versions: Object.fromEntries(versions) })
}

function send(response: ServerResponse, status: number, body?: string | Buffer): void {
  response.writeHead(status, { 'cache-control': 'no-store' }).end(body)
}
