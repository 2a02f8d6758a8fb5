import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { importedSpecifiers } from './dependencies.ts'
import { root, run } from '../workspace.ts'
import type { Exports, WorkspacePackage } from '../workspace.ts'

/**
 * Places where `any` stands in a type that users see. Reads the emitted declarations that the
 * package's exports reach: with `isolatedDeclarations` every public type is written out there, so an
 * `any` cannot hide behind inference. `allowMissing` is for a build that failed and said so already.
 */
export async function findPublicAny(
  packages: readonly WorkspacePackage[],
  { allowMissing = false }: { allowMissing?: boolean } = {},
): Promise<string[]> {
  const all = packages.flatMap(publicDeclarations)
  const declarations = all.filter((file) => existsSync(file))
  const missing = allowMissing ? [] : all.filter((file) => !existsSync(file))
  return [
    ...missing.map((file) => `${relative(root, file)} was not emitted.`),
    ...(declarations.length === 0 ? [] : await findAny(declarations)),
  ]
}

async function findAny(declarations: readonly string[]): Promise<string[]> {
  const { output } = await run(
    'oxlint',
    [
      `--config=${join(import.meta.dirname, 'public-any.oxlintrc.json')}`,
      '--no-ignore',
      '--format=json',
      '--deny=typescript/no-explicit-any',
      ...declarations,
    ],
    { quiet: true },
  )
  const { diagnostics, number_of_files: files } = JSON.parse(output) as LintReport
  // A linter that skipped a file would be a check that cannot fail.
  if (files !== declarations.length) {
    return [`oxlint read ${files} of ${declarations.length} declaration files.`]
  }
  return diagnostics.map(({ filename, labels, message }) => {
    const line = labels[0]?.span.line
    return `${relative(root, filename)}:${line ?? '?'} has \`any\` in a public type (${message})`
  })
}

interface LintReport {
  readonly number_of_files: number
  readonly diagnostics: ReadonlyArray<{
    readonly filename: string
    readonly message: string
    readonly labels: ReadonlyArray<{ readonly span: { readonly line: number } }>
  }>
}

/** The declaration files reachable from the package's exports. */
function publicDeclarations({ folder, manifest }: WorkspacePackage): string[] {
  const found = new Set<string>()
  const visit = (file: string): void => {
    if (found.has(file)) return
    found.add(file)
    if (!existsSync(file)) return
    for (const specifier of importedSpecifiers(readFileSync(file, 'utf8'))) {
      if (specifier.startsWith('.')) {
        visit(join(dirname(file), specifier.replace(/\.[jt]s$/, '.d.ts')))
      }
    }
  }
  for (const target of typeTargets(manifest.exports)) visit(join(folder, target))
  return [...found]
}

function typeTargets(exports: Exports | undefined): string[] {
  if (exports === undefined || exports === null || typeof exports === 'string') return []
  return Object.entries(exports).flatMap(([key, value]) =>
    key === 'types' && typeof value === 'string' ? [value] : typeTargets(value),
  )
}
