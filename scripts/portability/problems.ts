import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Metafile } from 'esbuild'
import { isBuiltin } from './bundle.ts'
import type { Bundle } from './bundle.ts'

/** Why a bundle would not run, or would carry more than it should, away from Node. */
export function findBundleProblems({ text, metafile }: Bundle, workspace: string): string[] {
  return [
    ...builtinImports(metafile),
    ...builtinNames(text),
    ...foreignModules(metafile),
    ...secondCopies(metafile, workspace),
  ]
}

function builtinImports(metafile: Metafile): string[] {
  const kept = new Set(
    Object.values(metafile.outputs)
      .flatMap((output) => output.imports)
      .filter(({ external, path }) => external === true && isBuiltin(path))
      .map(({ path }) => path),
  )
  return [...kept].map((builtin) => {
    const importers = Object.entries(metafile.inputs)
      .filter(([, input]) => input.imports.some(({ path }) => path === builtin))
      .map(([file]) => file)
    return `${builtin} is imported by ${importers.join(', ')}`
  })
}

/** The only other way to a built-in is `process.getBuiltinModule('node:…')`, which is undefined elsewhere. */
function builtinNames(text: string): string[] {
  const all = [...text.matchAll(/["'`](node:[a-z_/]+)["'`]/g)]
  return all
    .filter(
      ({ index }) =>
        !/getBuiltinModule(?:\?\.)?\($/.test(text.slice(Math.max(0, index - 30), index)),
    )
    .filter(
      ({ index }) => !/(?:from|import|import\()$/.test(text.slice(Math.max(0, index - 30), index)),
    )
    .map(([, name]) => `"${name}" stands in the bundle outside process.getBuiltinModule`)
}

function foreignModules(metafile: Metafile): string[] {
  return bundledFiles(metafile)
    .filter((file) => file.includes('node_modules/'))
    .map((file) => `${file} is not ours`)
}

/** The same module twice: as source and as built file, or the same text under two paths. */
function secondCopies(metafile: Metafile, workspace: string): string[] {
  const seen = new Map<string, string>()
  const problems: string[] = []
  for (const file of bundledFiles(metafile)) {
    const text = readFileSync(join(workspace, file), 'utf8')
    const module = file.replace(/\/(?:src|dist)\//, '/').replace(/\.[cm]?[jt]sx?$/, '')
    const keys = [
      module,
      ...(text.length > 200 ? [createHash('sha256').update(text).digest('hex')] : []),
    ]
    const other = keys.map((key) => seen.get(key)).find((found) => found !== undefined)
    if (other !== undefined) problems.push(`${file} is a second copy of ${other}`)
    for (const key of keys) seen.set(key, file)
  }
  return problems
}

/** Files of which at least one byte is left after dead code is gone. */
function bundledFiles(metafile: Metafile): string[] {
  const files = Object.values(metafile.outputs).flatMap((output) =>
    Object.entries(output.inputs)
      .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
      .map(([file]) => file),
  )
  return files.filter((file) => file !== 'entry.ts')
}
