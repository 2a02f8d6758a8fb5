import { existsSync, globSync, readdirSync, readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { basename, join, relative } from 'node:path'
import { groupOf } from '../test/groups.ts'
import { findPackages, readJson, zeroDependencyPackages } from '../workspace.ts'
import type { Manifest, WorkspacePackage } from '../workspace.ts'

/** What each portable package may use of ours. Arrows never turn round. */
const allowedBelow: Readonly<Record<string, readonly string[]>> = {
  '@skein/base': [],
  '@skein/ai': ['@skein/base'],
  '@skein/agents': ['@skein/base', '@skein/ai'],
  '@skein/threads': ['@skein/base'],
  '@skein/governance': ['@skein/base'],
}

/** Manifests that are no packages of the workspace: peers, templates, an example with packages of its own. */
const manifestsBeside = [
  'peers/*/package.json',
  'packages/create-skein/templates/*/package.json',
  'examples/*/package.json',
]

const exactVersion = /^(?:npm:(?:@[^@/]+\/)?[^@]+@)?\d+\.\d+\.\d+(?:-[\w.]+)?$/

/** Problems with versions, dependencies and imports in a workspace; empty when all is well. */
export function findDependencyProblems(workspace: string): string[] {
  const packages = findPackages(workspace)
  const versions = new Map(packages.map(({ name, manifest }) => [name, manifest.version]))
  const manifests: Array<readonly [string, Manifest]> = [
    ['package.json', join(workspace, 'package.json')] as const,
    ...globSync(manifestsBeside, { cwd: workspace }).map(
      (label) => [label, join(workspace, label)] as const,
    ),
    ...packages.map(
      ({ folder }) =>
        [join(relative(workspace, folder), 'package.json'), join(folder, 'package.json')] as const,
    ),
  ]
    .filter(([, file]) => existsSync(file))
    .map(([label, file]) => [label, readJson(file) as Manifest] as const)

  return [
    ...manifests.flatMap(([label, manifest]) => inexactVersions(label, manifest, versions)),
    ...packages.flatMap((entry) => foreignDependencies(entry)),
    ...packages.flatMap((entry) => undeclaredImports(workspace, entry)),
  ]
}

function inexactVersions(
  label: string,
  manifest: Manifest,
  versions: ReadonlyMap<string, string | undefined>,
): string[] {
  const problems: string[] = []
  for (const field of [
    'dependencies',
    'devDependencies',
    'optionalDependencies',
    'overrides',
  ] as const) {
    for (const [name, version] of Object.entries(manifest[field] ?? {})) {
      if (typeof version !== 'string' || !exactVersion.test(version)) {
        problems.push(
          `${label}: ${field}.${name} is ${JSON.stringify(version)}; write an exact version.`,
        )
      } else if (versions.has(name) && versions.get(name) !== version) {
        problems.push(
          `${label}: ${field}.${name} is ${version}, but the workspace has ${versions.get(name)}.`,
        )
      }
    }
  }
  for (const [name, version] of Object.entries(manifest.peerDependencies ?? {})) {
    if (exactVersion.test(version))
      problems.push(
        `${label}: peerDependencies.${name} is ${version}; write a range, the user has a version of its own.`,
      )
  }
  return problems
}

function foreignDependencies({ name, manifest }: WorkspacePackage): string[] {
  if (!zeroDependencyPackages.includes(name)) return []
  const allowed = allowedBelow[name] ?? []
  return runtimeDependencies(manifest)
    .filter((dependency) => !allowed.includes(dependency))
    .map((dependency) =>
      dependency.startsWith('@skein/')
        ? `${name} depends on ${dependency}, which is not below it.`
        : `${name} depends on ${dependency}; it must work without any third-party package.`,
    )
}

/** What an installation of the package always brings along; optional peers are the user's choice. */
function runtimeDependencies(manifest: Manifest): string[] {
  const optional = manifest.peerDependenciesMeta ?? {}
  const peers = Object.keys(manifest.peerDependencies ?? {})
  return [
    ...Object.keys(manifest.dependencies ?? {}),
    ...Object.keys(manifest.optionalDependencies ?? {}),
    ...peers.filter((peer) => optional[peer]?.optional !== true),
  ]
}

function undeclaredImports(
  workspace: string,
  { name, folder, manifest }: WorkspacePackage,
): string[] {
  const development = [manifest, readJson(join(workspace, 'package.json')) as Manifest]
  const declared = {
    source: new Set([
      name,
      ...Object.keys(manifest.dependencies ?? {}),
      ...Object.keys(manifest.optionalDependencies ?? {}),
      ...Object.keys(manifest.peerDependencies ?? {}),
    ]),
    test: new Set(development.flatMap((entry) => Object.keys(entry.devDependencies ?? {}))),
  }
  const peers = new Set(
    globSync('peers/*/package.json', { cwd: workspace }).flatMap((path) =>
      Object.keys((readJson(join(workspace, path)) as Manifest).dependencies ?? {}),
    ),
  )
  const portable = zeroDependencyPackages.includes(name)
  const problems: string[] = []
  for (const file of sourceFiles(folder)) {
    const label = relative(workspace, file)
    const isTest = isTestFile(file, folder) || isBundled(file, folder)
    for (const specifier of importedSpecifiers(readFileSync(file, 'utf8'))) {
      if (specifier.startsWith('.') || specifier.startsWith('#')) continue
      if (specifier.startsWith('node:') || builtinModules.includes(specifier)) {
        if (portable && !isTest && !isNodeFile(file)) {
          problems.push(
            `${label} imports ${specifier}; only files named for it (*-node.ts) may, in a portable package.`,
          )
        }
        continue
      }
      const wanted = packageOf(specifier)
      const isOfGroup = isTest && peers.has(wanted) && !isFastTest(file)
      if (!declared.source.has(wanted) && !(isTest && declared.test.has(wanted)) && !isOfGroup) {
        problems.push(`${label} imports ${specifier}, which ${name} does not declare.`)
      }
    }
  }
  return problems
}

function sourceFiles(folder: string): string[] {
  return ['src', 'test']
    .map((name) => join(folder, name))
    .filter((path) => existsSync(path))
    .flatMap((path) =>
      readdirSync(path, { recursive: true, encoding: 'utf8' })
        .filter((file) => /\.tsx?$/.test(file))
        .map((file) => join(path, file)),
    )
}

function isTestFile(file: string, folder: string): boolean {
  return /\.test(-d)?\.tsx?$/.test(file) || relative(folder, file).startsWith('test')
}

/** A test of `npm test`: packages of `peers/` are not installed for it. */
function isFastTest(file: string): boolean {
  return /\.test(-d)?\.tsx?$/.test(file) && groupOf(file) === undefined
}

/**
 * The page of Studio is bundled when the package is built, so what it imports is needed at that time only. The
 * public list and `files.ts` run where the package is installed.
 */
function isBundled(file: string, folder: string): boolean {
  const path = relative(folder, file).replaceAll('\\', '/')
  return folder.endsWith('studio') && !/^src\/(?:index|files)\.ts$/.test(path)
}

/** Static and dynamic imports; lines of comments do not count. */
export function importedSpecifiers(source: string): string[] {
  const code = source.replace(/^\s*(?:\/?\*|\/\/).*$/gm, '')
  const patterns = [
    /^\s*import\s+(?:[\w*{}\s,$]+\sfrom\s+)?['"]([^'"]+)['"]/gm,
    /^\s*export\s+(?:type\s+)?(?:\*(?:\s+as\s+[\w$]+)?|\{[^}]*\})\s*from\s+['"]([^'"]+)['"]/gm,
    /\bimport\(\s*['"]([^'"]+)['"]\s*\)/g,
  ]
  const found = patterns.flatMap((pattern) =>
    [...code.matchAll(pattern)].map((match) => match[1] ?? ''),
  )
  // Code that tests write as text may name its imports by an expression.
  return found.filter((specifier) => !specifier.includes('${'))
}

function isNodeFile(file: string): boolean {
  return /-node[-.]/.test(basename(file)) || basename(file).startsWith('file-')
}

function packageOf(specifier: string): string {
  const parts = specifier.split('/')
  return specifier.startsWith('@') ? parts.slice(0, 2).join('/') : (parts[0] ?? specifier)
}
