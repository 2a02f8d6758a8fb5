import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from '../workspace.ts'
import type { Manifest, WorkspacePackage } from '../workspace.ts'

/** A package that is ready to be published. */
export interface Release {
  readonly name: string
  readonly version: string
  readonly tarball: string
}

export interface PublishOptions {
  readonly registry: string
  /** The tag under which the version can be installed, `latest` or `next`. */
  readonly tag: string
  /** Signs the provenance of the tarballs; works in CI only. */
  readonly provenance?: boolean
  /** Asks the registry and says what would be published. */
  readonly isDryRun?: boolean
  readonly say?: (line: string) => void
}

/** Public packages, each after those that it depends on: an installation between two of them finds what it needs. */
export function publishOrder(packages: readonly WorkspacePackage[]): WorkspacePackage[] {
  const open = new Map(
    packages.filter(({ manifest }) => manifest.private !== true).map((one) => [one.name, one]),
  )
  const ordered: WorkspacePackage[] = []
  while (open.size > 0) {
    const ready = [...open.values()].filter(({ manifest }) =>
      ownDependencies(manifest).every(([name]) => !open.has(name)),
    )
    if (ready.length === 0)
      throw new Error(`These packages depend on each other: ${[...open.keys()].join(', ')}.`)
    for (const one of ready) {
      ordered.push(one)
      open.delete(one.name)
    }
  }
  // Its templates name the others, so a new project in the middle of a release would not install.
  const isLast = ({ name }: WorkspacePackage): boolean => name === 'create-skein'
  return [...ordered.filter((one) => !isLast(one)), ...ordered.filter(isLast)]
}

/** What an installation brings along or asks for; optional peers are packages that build on this one. */
function ownDependencies(manifest: Manifest): Array<[name: string, range: string]> {
  const { dependencies = {}, peerDependencies = {}, peerDependenciesMeta = {} } = manifest
  return [
    ...Object.entries(dependencies),
    ...Object.entries(peerDependencies).filter(
      ([name]) => peerDependenciesMeta[name]?.optional !== true,
    ),
  ]
}

/** Why this state of the repository cannot be published as this version; empty when it can. */
export function findReleaseProblems(
  packages: readonly WorkspacePackage[],
  { version, changelog }: { readonly version: string; readonly changelog: string },
): string[] {
  const own = new Map(packages.map(({ name, manifest }) => [name, manifest.version]))
  return [
    ...packages.flatMap(({ name, manifest }) => [
      ...(manifest.version === version
        ? []
        : [`${name} has version ${manifest.version}, not ${version}.`]),
      ...Object.entries(manifest.dependencies ?? {}).flatMap(([dependency, wanted]) =>
        own.has(dependency) && wanted !== version
          ? [`${name} depends on ${dependency} ${wanted}, not ${version}.`]
          : [],
      ),
    ]),
    ...findChangelogProblems(changelog, version),
  ]
}

/** The head of a section of CHANGELOG.md: a version, and its date or the word `unreleased`. */
const SECTION = /^## (\d+)\.(\d+)\.(\d+)(-[\w.]+)?, (unreleased|\d{4}-\d{2}-\d{2})$/

/** Whether sections go from new to old, and the newest is dated and that of the version. */
export function findChangelogProblems(changelog: string, version?: string): string[] {
  const heads = changelog.split('\n').filter((line) => line.startsWith('## '))
  const problems = heads.flatMap((head, index) =>
    !SECTION.test(head)
      ? [`CHANGELOG.md: "${head}" is not "## <version>, <date>" or "## <version>, unreleased".`]
      : index > 0 && head.endsWith('unreleased')
        ? [`CHANGELOG.md: only the first section can be unreleased, not "${head}".`]
        : [],
  )
  if (problems.length > 0) return problems
  const numbers = heads.map((head) => SECTION.exec(head)!.slice(1, 4).map(Number))
  for (let i = 1; i < numbers.length; i++) {
    const [newer = [], older = []] = [numbers[i - 1], numbers[i]]
    const place = newer.findIndex((part, j) => part !== older[j])
    if (place >= 0 && newer[place]! < older[place]!)
      problems.push(`CHANGELOG.md: "${heads[i]}" is newer than the section above it.`)
  }
  if (version !== undefined && !heads[0]?.startsWith(`## ${version}, 2`))
    problems.push(
      `CHANGELOG.md begins with "${heads[0] ?? 'no section'}". Write "## ${version}, <date>" there.`,
    )
  return problems
}

/**
 * Publishes tarballs in their order. The registry is asked for all of them first: a version that is there with
 * the same contents is left alone, so that a release that was cut off can be started again; one with other
 * contents stops everything before anything is sent.
 */
export async function publish(
  releases: readonly Release[],
  { registry, tag, provenance = false, isDryRun = false, say = console.log }: PublishOptions,
): Promise<void> {
  const missing: Release[] = []
  for (const release of releases) {
    const published = await publishedIntegrity(release, registry)
    if (published === undefined) missing.push(release)
    else if (published === integrityOf(release)) say(`there already: ${idOf(release)}`)
    else
      throw new Error(
        `${idOf(release)} is at ${registry} with other contents. A version is published once: raise the version.`,
      )
  }
  for (const release of missing) {
    const args = [
      'publish',
      release.tarball,
      `--registry=${registry}`,
      `--tag=${tag}`,
      '--access=public',
      '--ignore-scripts',
      ...(provenance ? ['--provenance'] : []),
      ...(isDryRun ? ['--dry-run'] : []),
    ]
    const { code, output } = await run('npm', args, { quiet: true, timeoutMs: 120_000 })
    if (code !== 0) {
      const done = missing.slice(0, missing.indexOf(release)).map(idOf)
      throw new Error(
        `${idOf(release)} could not be published. Published before it: ${done.join(', ') || 'nothing'}. ` +
          `Start again when the cause is gone; what is published is left alone.\n${output.trim()}`,
      )
    }
    say(`${isDryRun ? 'would be published' : 'published'}: ${idOf(release)}`)
  }
}

function idOf({ name, version }: Release): string {
  return `${name}@${version}`
}

function integrityOf({ tarball }: Release): string {
  return `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`
}

async function publishedIntegrity(
  { name, version }: Release,
  registry: string,
): Promise<string | undefined> {
  const address = join(registry, encodeURIComponent(name)).replace(/^(https?:)\/+/, '$1//')
  const response = await fetch(address, {
    headers: { accept: 'application/vnd.npm.install-v1+json' },
    signal: AbortSignal.timeout(30_000),
  })
  if (response.status === 404) return undefined
  if (!response.ok) throw new Error(`${address} answers with status ${response.status}.`)
  const { versions = {} } = (await response.json()) as {
    versions?: Record<string, { readonly dist: { readonly integrity: string } }>
  }
  return versions[version]?.dist.integrity
}
