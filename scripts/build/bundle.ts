import { existsSync } from 'node:fs'
import { join, relative } from 'node:path'
import { rolldown } from 'rolldown'
import type { ChunkingContext } from 'rolldown'
import { root, run } from '../workspace.ts'
import type { Exports, Manifest, WorkspacePackage } from '../workspace.ts'
import { planChunks } from './chunks.ts'
import { markPure } from './pure.ts'
import type { Module } from './chunks.ts'

/**
 * Writes `dist` of each package: declarations by tsc, one file per source, and JavaScript by rolldown, one
 * file per entry with chunks for what several entries share.
 */
export async function buildPackages(packages: readonly WorkspacePackage[]): Promise<void> {
  const [{ code, output }] = await Promise.all([
    run('tsc', ['-b', ...packages.map(({ folder }) => folder)], { quiet: true }),
    ...packages.map(bundlePackage),
  ])
  if (code !== 0) throw new Error(`tsc fails:\n${output}`)
}

/** Writes the page of Studio, which `studioFiles()` reads, next to the built entry of its package. */
export async function buildPage(): Promise<void> {
  const cwd = join(root, 'packages', 'studio')
  const { code, output } = await run('vite', ['build', '--logLevel', 'warn'], { cwd, quiet: true })
  if (code !== 0) throw new Error(`vite fails:\n${output}`)
}

/**
 * All entries of a package in one run: a class that two entries give out must stand in one chunk, or
 * `instanceof` fails between them. Other packages and `#` imports stay imports, so that Node, browsers and
 * workers choose by their own conditions at the end.
 */
export async function bundlePackage({ folder, manifest }: WorkspacePackage): Promise<void> {
  const files = entryFiles(manifest)
  const sources = Object.fromEntries(
    files.map((file) => [file.slice('./dist/'.length), sourceOf(folder, file)]),
  )
  const entries = Object.values(sources)
  let plan: ReadonlyMap<string, string> | undefined
  const bundle = await rolldown({
    cwd: root,
    input: {},
    plugins: [
      {
        name: 'entries',
        // The option for all entries cannot be `strict` together with a plan of chunks; for each entry it can.
        buildStart() {
          for (const [file, id] of Object.entries(sources))
            this.emitFile({ type: 'chunk', id, fileName: file, preserveSignature: 'strict' })
        },
      },
      // Marks are within lines, so the lines of the maps stay right.
      { name: 'pure', transform: (code, id) => ({ code: markPure(id, code), map: null }) },
    ],
    platform: 'neutral',
    checks: { bundlerTimings: false },
    external: (id) => !/^[./]/.test(id),
    preserveEntrySignatures: 'allow-extension',
    transform: { target: 'es2023' },
  })
  await bundle.write({
    dir: join(folder, 'dist'),
    format: 'esm',
    plugins: hasBuiltins(manifest)
      ? [{ name: 'builtins', renderChunk: (code) => ({ code: takeBuiltins(code), map: null }) }]
      : [],
    banner: ({ fileName }) =>
      Object.values(manifest.bin ?? {}).includes(`./dist/${fileName}`) ? '#!/usr/bin/env node' : '',
    chunkFileNames: 'chunks/[name]-[hash].js',
    minifyInternalExports: false,
    sourcemap: true,
    // `src` is published too, and the maps lead there.
    sourcemapExcludeSources: true,
    comments: { legal: false, annotation: true, jsdoc: false },
    codeSplitting: {
      includeDependenciesRecursively: false,
      groups: [
        {
          debugName: 'shared',
          name(id, context) {
            plan ??= planChunks(entries, (of) => moduleOf(of, context), sources['index.js'])
            return plan.get(id) ?? null
          },
        },
      ],
    },
  })
  await bundle.close()
}

/** The first Node in which every release has `process.getBuiltinModule`. */
const FIRST_NODE_WITH_BUILTINS = 24

function hasBuiltins({ engines }: Manifest): boolean {
  return Number(/^>=(\d+)/.exec(engines?.node ?? '')?.[1]) >= FIRST_NODE_WITH_BUILTINS
}

/** Modules that Node has loaded before any program begins. */
const LOADED = /^node:(?:async_hooks|buffer|events|fs|module|path|process|timers|url|util)$/

/**
 * Replaces imports of Node's own modules by `process.getBuiltinModule`. For an import, Node reads every export
 * of the module, and many of them load further modules when they are read: `import { existsSync } from
 * 'node:fs'` loads 34 of them and takes 4 ms, one name of `node:http` loads 113 and takes 46 ms. Functions of
 * a module that is not loaded yet load it when they are first called. Each statement stays in its line, so the
 * maps stay right.
 */
export function takeBuiltins(code: string): string {
  return code.replaceAll(
    /^import (?:\* as )?(?:(\w+)|\{([^}]*)\}) from "(node:[\w/]+)";$/gm,
    (_, whole: string | undefined, list: string | undefined, module: string) => {
      const load = `process.getBuiltinModule("${module}")`
      if (list === undefined) return `const ${whole} = ${load};`
      const cache = `$${module.replaceAll(/\W/g, '_')}`
      const names = list.split(',').map((name) => name.trim().split(' as '))
      const isLater = ([name = '']: readonly string[]) =>
        !LOADED.test(module) && isFunction(module, name)
      const now = names.filter((name) => !isLater(name)).map((name) => name.join(': '))
      const later = names
        .filter(isLater)
        .map(
          ([name, own = name]) => `${own} = (...given) => (${cache} ??= ${load}).${name}(...given)`,
        )
      return [
        ...(now.length > 0 ? [`const { ${now.join(', ')} } = ${load};`] : []),
        ...(later.length > 0 ? [`let ${cache}; const ${later.join(', ')};`] : []),
      ].join(' ')
    },
  )
}

/** Whether an export of a module of Node is a function, and not a class. */
function isFunction(module: string, name: string): boolean {
  const exports = process.getBuiltinModule(module) as Readonly<Record<string, unknown>> | undefined
  return typeof exports?.[name] === 'function' && !/^[A-Z]/.test(name)
}

function moduleOf(id: string, context: ChunkingContext): Module {
  const info = context.getModuleInfo(id)
  if (!info) throw new Error(`The bundler does not know ${id}.`)
  const own = (ids: readonly string[]) => ids.filter((imported) => imported.startsWith(root))
  return {
    bytes: info.code?.length ?? 0,
    isPortable: !info.importedIds.some((imported) => imported.startsWith('node:')),
    packages: info.importedIds.flatMap((imported) => packageOf(imported) ?? []),
    imports: own(info.importedIds),
    lazyImports: own(info.dynamicallyImportedIds),
  }
}

/** `@skein/ai` of `@skein/ai/vendors`; undefined for files, private (`#`) imports and modules of Node. */
function packageOf(imported: string): string | undefined {
  if (/^[./#]/.test(imported) || imported.startsWith('node:')) return undefined
  return imported.split('/', imported.startsWith('@') ? 2 : 1).join('/')
}

/** The built JavaScript files that a manifest names: exports, private imports and commands. */
export function entryFiles({ exports, imports, bin }: Manifest): string[] {
  const files = new Set<string>()
  const visit = (node: Exports): void => {
    if (typeof node === 'string') {
      if (/^\.\/dist\/.*\.js$/.test(node)) files.add(node)
    } else for (const child of Object.values(node ?? {})) visit(child)
  }
  for (const node of [exports, imports, bin]) if (node !== undefined) visit(node)
  return [...files]
}

function sourceOf(folder: string, file: string): string {
  const source = join(folder, file.replace('./dist/', 'src/').replace(/\.js$/, '.ts'))
  if (existsSync(source)) return source
  throw new Error(
    `${relative(root, folder)}/package.json names ${file}, but ${source} does not exist.`,
  )
}
