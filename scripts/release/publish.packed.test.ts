import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { json } from 'node:stream/consumers'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { findPackages, root, run, type WorkspacePackage } from '../workspace.ts'
import {
  findChangelogProblems,
  findReleaseProblems,
  publish,
  publishOrder,
  type Release,
} from './publish.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-publish-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function made(name: string, dependencies: Record<string, string> = {}): WorkspacePackage {
  const manifest = { name, version: '1.2.3', dependencies }
  return { name, folder: join(folder, name.replace('/', '-')), manifest }
}
const three = [
  made('@x/top', { '@x/middle': '1.2.3' }),
  made('@x/middle', { '@x/bottom': '1.2.3' }),
  made('@x/bottom'),
]

describe('what is published', () => {
  test('a package comes after those that it depends on', () => {
    expect(publishOrder(three).map(({ name }) => name)).toEqual([
      '@x/bottom',
      '@x/middle',
      '@x/top',
    ])
    const circle = [made('a', { b: '1.2.3' }), made('b', { a: '1.2.3' })]
    expect(() => publishOrder(circle)).toThrow('depend on each other: a, b')
  })

  test('so do the packages of this repository', () => {
    const names = publishOrder(findPackages()).map(({ name }) => name)
    expect(names[0]).toBe('@skein/base')
    expect(names.at(-1)).toBe('create-skein')
    expect(names.indexOf('skein')).toBeGreaterThan(names.indexOf('@skein/runtime'))
    expect(names.indexOf('@skein/agents')).toBeGreaterThan(names.indexOf('@skein/ai'))
  })

  test('all packages and the changelog have the version', () => {
    const changelog = '# Changelog\n\n## 1.2.3, 2026-11-20\n\n- One.\n'
    expect(findReleaseProblems(three, { version: '1.2.3', changelog })).toEqual([])
    expect(findReleaseProblems(three.slice(0, 2), { version: '1.2.4', changelog })).toEqual([
      '@x/top has version 1.2.3, not 1.2.4.',
      '@x/top depends on @x/middle 1.2.3, not 1.2.4.',
      '@x/middle has version 1.2.3, not 1.2.4.',
      'CHANGELOG.md begins with "## 1.2.3, 2026-11-20". Write "## 1.2.4, <date>" there.',
    ])
  })

  test.each([
    ['## Unreleased', 'is not "## <version>, <date>"'],
    ['## 1.0.0, 2026-11-20\n## 0.9.0, unreleased', 'only the first section can be unreleased'],
    ['## 0.9.0, 2026-11-20\n## 0.10.0, 2026-11-01', 'is newer than the section above'],
  ])('a changelog with %j is refused', (text, problem) => {
    expect(findChangelogProblems(text)[0]).toContain(problem)
  })

  test('the changelog of this repository has its shape', () => {
    const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
    expect(findChangelogProblems(changelog)).toEqual([])
  })
})

interface Published {
  readonly 'dist-tags': Record<string, string>
  readonly versions: Record<string, { dist: { integrity: string; tarball: string } }>
  readonly _attachments: Record<string, { data: string }>
}

/** As much of a registry as `npm publish` and `npm install` need. */
class Registry {
  readonly packages = new Map<string, Published>()
  /** The package whose next publishing fails. */
  failsFor = ''
  readonly #server: Server = createServer((request, response) => {
    const [name = '', , file = ''] = decodeURIComponent((request.url ?? '').slice(1))
      .replace('@x/', '@x+')
      .split('/')
      .map((part) => part.replace('+', '/'))
    const known = this.packages.get(name)
    const answer = (status: number, body: unknown): void =>
      void response
        .writeHead(status, { 'content-type': 'application/json' })
        .end(JSON.stringify(body))
    if (request.method === 'PUT')
      void json(request).then((body) => {
        if (this.failsFor === name) {
          this.failsFor = ''
          return answer(503, { error: 'out of order' })
        }
        this.packages.set(name, body as Published)
        answer(201, { ok: true })
      })
    else if (!known) answer(404, { error: 'not found' })
    else if (file === '') answer(200, known)
    else response.end(Buffer.from(Object.values(known._attachments)[0]!.data, 'base64'))
  })

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`
  }

  close(): void {
    this.#server.close()
    this.#server.closeAllConnections()
  }
}

describe('publishing to a registry', { timeout: 60_000 }, () => {
  const registry = new Registry()
  const said: string[] = []
  let address = ''
  let releases: Release[] = []
  const send = (isDryRun = false): Promise<void> => {
    said.length = 0
    return publish(releases, {
      registry: address,
      tag: 'next',
      isDryRun,
      say: (line) => said.push(line),
    })
  }

  beforeAll(async () => {
    address = await registry.listen()
    // npm takes the key of the registry, and nothing of the person who runs the tests, from this file.
    writeFileSync(
      join(folder, 'npmrc'),
      `//${new URL(address).host}/:_authToken=key\nfetch-retries=0\nupdate-notifier=false\n`,
    )
    process.env['NPM_CONFIG_USERCONFIG'] = join(folder, 'npmrc')
    for (const { name, folder: own, manifest } of three) {
      mkdirSync(own)
      writeFileSync(join(own, 'package.json'), JSON.stringify(manifest))
      writeFileSync(join(own, 'index.js'), `export const name = '${name}'\n`)
    }
    releases = await Promise.all(publishOrder(three).map(packed))
  })
  afterAll(() => {
    delete process.env['NPM_CONFIG_USERCONFIG']
    registry.close()
  })

  async function packed({ name, folder: own }: WorkspacePackage): Promise<Release> {
    const args = ['pack', '--silent', `--pack-destination=${folder}`]
    const { output } = await run('npm', args, { cwd: own, quiet: true })
    return { name, version: '1.2.3', tarball: join(folder, output.trim()) }
  }

  test('a dry run sends nothing', async () => {
    await send(true)
    expect(said).toEqual([
      'would be published: @x/bottom@1.2.3',
      'would be published: @x/middle@1.2.3',
      'would be published: @x/top@1.2.3',
    ])
    expect(registry.packages.size).toBe(0)
  })

  test('a release that was cut off is started again, and everything can be installed', async () => {
    registry.failsFor = '@x/middle'
    await expect(send()).rejects.toThrow(
      /@x\/middle@1\.2\.3 could not be published\. Published before it: @x\/bottom@1\.2\.3\./,
    )
    expect([...registry.packages.keys()]).toEqual(['@x/bottom'])
    await send()
    expect(said).toEqual([
      'there already: @x/bottom@1.2.3',
      'published: @x/middle@1.2.3',
      'published: @x/top@1.2.3',
    ])
    expect(registry.packages.get('@x/top')?.['dist-tags']).toEqual({ next: '1.2.3' })
    const user = join(folder, 'user')
    mkdirSync(user)
    writeFileSync(join(user, 'package.json'), '{ "private": true, "type": "module" }')
    const install = ['install', '@x/top@next', `--registry=${address}`, '--no-audit', '--no-fund']
    install.push('--loglevel=notice') // npm may have been made silent by the command that runs the tests
    const { code, output } = await run('npm', install, { cwd: user, quiet: true })
    expect([code, output.includes('added 3 packages')]).toEqual([0, true])
  })

  test('other contents under a published version stop everything', async () => {
    const top = three[0]!
    writeFileSync(join(top.folder, 'index.js'), 'export const name = "changed"\n')
    releases = [...releases.slice(0, 2), await packed(top)]
    await expect(send()).rejects.toThrow(/^@x\/top@1\.2\.3 is at .* raise the version\.$/)
    expect(said).toHaveLength(2)
  })
})
