import { builtinModules } from 'node:module'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import type { Metafile, Plugin } from 'esbuild'

/** A place that is not Node, by the export conditions its bundlers set. */
export interface Platform {
  readonly name: string
  readonly conditions: readonly string[]
}

export const platforms: readonly Platform[] = [
  { name: 'browser', conditions: ['browser'] },
  { name: 'worker', conditions: ['workerd', 'worker', 'browser'] },
]

export interface Bundle {
  readonly text: string
  readonly metafile: Metafile
  readonly minifiedBytes: number
  readonly gzipBytes: number
}

/**
 * Bundles a small program as an application for that platform would: from source in the workspace, from
 * what is published where `workspace` is a folder into which the packed packages were installed.
 */
export async function bundle(
  code: string,
  platform: Platform,
  workspace: string,
  external: readonly string[] = [],
  isPublished = false,
): Promise<Bundle> {
  const result = await build({
    stdin: { contents: code, resolveDir: workspace, sourcefile: 'entry.ts', loader: 'ts' },
    absWorkingDir: workspace,
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'esm',
    target: 'es2023',
    platform: 'neutral',
    mainFields: ['module', 'main'],
    conditions: [...(isPublished ? [] : ['@skein/source']), ...platform.conditions],
    plugins: [keepBuiltins],
    external: [...external],
    logLevel: 'silent',
  })
  const text = result.outputFiles[0]?.text ?? ''
  return {
    text,
    metafile: result.metafile,
    minifiedBytes: Buffer.byteLength(text),
    gzipBytes: gzipSync(text, { level: 9 }).length,
  }
}

/** Leaves built-in modules in the bundle as imports, so that they can be reported with their importers. */
const keepBuiltins: Plugin = {
  name: 'keep-builtins',
  setup(build) {
    build.onResolve({ filter: /^[a-z]/ }, ({ path }) =>
      isBuiltin(path) ? { path, external: true } : undefined,
    )
  },
}

export function isBuiltin(specifier: string): boolean {
  return specifier.startsWith('node:') || builtinModules.includes(specifier)
}
