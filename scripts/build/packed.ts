import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { readJson, run } from '../workspace.ts'
import type { Exports, Manifest, WorkspacePackage } from '../workspace.ts'

/** A package as it comes out of its tarball. */
export interface PackedPackage {
  readonly name: string
  readonly folder: string
  readonly manifest: Manifest
  /** Specifiers a user may import, `@skein/base` or `@skein/ai/testing`. */
  readonly entries: readonly string[]
}

/** Packs each package and unpacks it under `consumer/node_modules`, where an installation would put it. */
export async function packInto(
  consumer: string,
  packages: readonly WorkspacePackage[],
): Promise<PackedPackage[]> {
  rmSync(consumer, { recursive: true, force: true })
  const tarballs = join(consumer, 'tarballs')
  mkdirSync(tarballs, { recursive: true })
  writeFileSync(join(consumer, 'package.json'), '{ "private": true, "type": "module" }\n')
  return Promise.all(packages.map((entry) => pack(consumer, tarballs, entry)))
}

async function pack(
  consumer: string,
  tarballs: string,
  { name, folder }: WorkspacePackage,
): Promise<PackedPackage> {
  const own = join(tarballs, name.replace('/', '-'))
  mkdirSync(own)
  await succeed('npm', ['pack', '--silent', '--ignore-scripts', '--pack-destination', own], folder)
  const [tarball] = readdirSync(own)
  await succeed('tar', ['-xzf', join(own, tarball ?? ''), '-C', own], folder)
  const target = join(consumer, 'node_modules', name)
  mkdirSync(join(target, '..'), { recursive: true })
  renameSync(join(own, 'package'), target)
  const manifest = readJson(join(target, 'package.json')) as Manifest
  return { name, folder: target, manifest, entries: importable(name, manifest.exports) }
}

async function succeed(command: string, args: readonly string[], cwd: string): Promise<void> {
  const { code, output } = await run(command, args, { cwd, quiet: true })
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} failed in ${cwd}:\n${output}`)
}

/** Problems a user of the packed packages would meet; empty when there are none. */
export async function findPackedProblems(
  consumer: string,
  packed: readonly PackedPackage[],
): Promise<string[]> {
  return [
    ...packed.flatMap(missingTargets),
    ...packed.flatMap(unexpectedFiles),
    ...(await Promise.all(packed.map(publintMessages))).flat(),
    ...(await Promise.all(packed.map((entry) => failingImports(consumer, entry)))).flat(),
    ...(await typeErrors(consumer, packed)),
  ]
}

function importable(name: string, exports: Exports | undefined): string[] {
  const paths = exports !== null && typeof exports === 'object' ? Object.keys(exports) : ['.']
  return paths
    .filter((path) => path.startsWith('.') && !path.includes('*') && !path.endsWith('.json'))
    .map((path) => name + path.slice(1))
}

/** Every file that an export leads to, under any condition, is in the tarball, and each entry has types. */
function missingTargets({ name, folder, manifest }: PackedPackage): string[] {
  const problems: string[] = []
  const visit = (path: string, node: Exports): void => {
    if (node === null) return
    if (typeof node === 'string') {
      if (!existsSync(join(folder, node)))
        problems.push(`${name}: exports["${path}"] leads to ${node}, which is not packed.`)
      return
    }
    const conditions = Object.keys(node)
    if (conditions.includes('default') && !conditions.includes('types')) {
      problems.push(`${name}: exports["${path}"] has no types.`)
    }
    for (const child of Object.values(node)) visit(path, child)
  }
  const { exports } = manifest
  if (exports === undefined || exports === null || typeof exports === 'string') {
    return [`${name}: exports must list each path with its types.`]
  }
  for (const [path, node] of Object.entries(exports)) visit(path, node)
  return problems
}

/** What a tarball may hold. Anything else, a test, a key or a note, was packed by mistake. */
const ALLOWED: readonly RegExp[] = [
  /^(?:package\.json|README\.md|LICENSE)$/,
  /^bin\/[\w-]+\.js$/,
  /^dist\/(?:[\w.-]+\/)*[\w.-]+\.(?:js|js\.map|d\.ts|d\.ts\.map)$/,
  /^src\/(?:[\w.-]+\/)*[\w.-]+\.tsx?$/,
]
/** What some packages hold besides: data that they read, files that they copy or serve. */
const ALLOWED_IN: Readonly<Record<string, readonly RegExp[]>> = {
  '@skein/server': [/^src\/protocols\/[\w-]+\/README\.md$/],
  '@skein/studio': [
    /^dist\/page\/(?:[\w.-]+\/)*[\w.-]+\.(?:html|js|css|svg|woff2)$/,
    /^dist\/docs\/(?:[\w-]+\/)*[\w-]+\.(?:html|md|txt|js|css|svg|png|json)$/,
  ],
  skein: [
    /^deploy\/(?:Dockerfile|\.dockerignore|compose\.yaml|skein\.service)$/,
    /^deploy\/(?:kubernetes|proxy)\/[\w.-]+$/,
  ],
  'create-skein': [/^templates\/(?:[\w.-]+\/)*[\w.-]+$/],
}

/** Files of a tarball that do not belong there, and those that must be in each. */
export function findUnexpectedFiles(name: string, files: readonly string[]): string[] {
  const allowed = [...ALLOWED, ...(ALLOWED_IN[name] ?? [])]
  const isTest = (file: string): boolean =>
    /\.test(-d)?\.[a-z.]+$|__fixtures__/.test(file) && !file.startsWith('templates/')
  return [
    ...['package.json', 'README.md', 'LICENSE']
      .filter((file) => !files.includes(file))
      .map((file) => `${name}: ${file} is not packed.`),
    ...files
      .filter((file) => isTest(file) || !allowed.some((pattern) => pattern.test(file)))
      .map((file) => `${name}: ${file} is packed, and scripts/build/packed.ts does not allow it.`),
  ]
}

function unexpectedFiles({ name, folder }: PackedPackage): string[] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
  return findUnexpectedFiles(name, files)
}

async function publintMessages({ name, folder }: PackedPackage): Promise<string[]> {
  const { messages } = await publint({ pkgDir: folder, pack: false, strict: true })
  const manifest = readJson(join(folder, 'package.json')) as Record<string, unknown>
  return messages.map(
    (message) => `${name}: publint: ${formatMessage(message, manifest, { color: false })}`,
  )
}

/** Plain Node, no custom condition: what a user's program does. */
async function failingImports(consumer: string, { entries }: PackedPackage): Promise<string[]> {
  const program = entries.map((entry) => `await import(${JSON.stringify(entry)})`).join('\n')
  const file = join(consumer, `import-${entries[0]?.replaceAll(/[@/]/g, '-')}.js`)
  writeFileSync(file, `${program}\n`)
  const { code, output } = await run('node', [file], {
    cwd: consumer,
    quiet: true,
    timeoutMs: 30_000,
  })
  return code === 0 ? [] : [`${entries.join(', ')}: import fails:\n${output}`]
}

/** The packed declarations, checked under both ways of resolving that users have. */
async function typeErrors(consumer: string, packed: readonly PackedPackage[]): Promise<string[]> {
  const entries = packed.flatMap((entry) => entry.entries)
  const program = entries.map(
    (entry, index) => `import * as entry${index} from '${entry}'\nvoid entry${index}`,
  )
  writeFileSync(join(consumer, 'consumer.ts'), `${program.join('\n')}\n`)
  const resolutions = [
    { module: 'nodenext', moduleResolution: 'nodenext' },
    { module: 'esnext', moduleResolution: 'bundler' },
  ]
  const outputs = await Promise.all(
    resolutions.map(async (resolution) => {
      const config = join(consumer, `tsconfig.${resolution.moduleResolution}.json`)
      writeFileSync(
        config,
        JSON.stringify({
          compilerOptions: { ...consumerOptions, ...resolution },
          files: ['consumer.ts'],
        }),
      )
      const { code, output } = await run('tsc', ['-p', config], { cwd: consumer, quiet: true })
      return code === 0 ? [] : [`types under "${resolution.moduleResolution}":\n${output}`]
    }),
  )
  return outputs.flat()
}

/** As strict as a user can be, declarations of dependencies included. */
const consumerOptions = {
  noEmit: true,
  strict: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: false,
  target: 'es2023',
  lib: ['es2023', 'esnext.disposable', 'dom', 'dom.iterable', 'dom.asynciterable'],
  types: [],
}
