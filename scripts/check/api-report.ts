import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { root } from '../workspace.ts'
import type { WorkspacePackage } from '../workspace.ts'
import { Declarations, typeEntries, type Declaration } from './declarations.ts'

/** Where the reports are committed, one file a package. */
const FOLDER = join(root, 'api')

/**
 * Differences between what users can import now and the committed reports in `api/`, so that no public name or
 * signature changes unseen. Reads the emitted declarations.
 */
export function findApiChanges(
  packages: readonly WorkspacePackage[],
  folder: string = FOLDER,
): string[] {
  const reports = reportsOf(packages)
  const known = existsSync(folder) ? readdirSync(folder) : []
  const stale = known.filter((file) => file.endsWith('.md') && !reports.has(file))
  return [
    ...stale.map((file) => `api/${file} is the report of a package that does not exist.`),
    ...[...reports].flatMap(([file, report]) => {
      const path = join(folder, file)
      const committed = existsSync(path) ? readFileSync(path, 'utf8') : ''
      return committed === report ? [] : [differenceText(file, committed, report)]
    }),
  ]
}

/** Writes the reports of all packages. */
export function writeApiReports(
  packages: readonly WorkspacePackage[],
  folder: string = FOLDER,
): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  for (const [file, report] of reportsOf(packages)) writeFileSync(join(folder, file), report)
}

function reportsOf(packages: readonly WorkspacePackage[]): Map<string, string> {
  const reports = new Map<string, string>()
  for (const entry of packages) {
    const report = apiReport(entry)
    if (report !== undefined) reports.set(`${basename(entry.folder)}.md`, report)
  }
  return reports
}

function differenceText(file: string, before: string, after: string): string {
  const [old, now] = [new Set(before.split('\n')), new Set(after.split('\n'))]
  const lines = [
    ...[...old].filter((line) => !now.has(line)).map((line) => `  - ${line}`),
    ...[...now].filter((line) => !old.has(line)).map((line) => `  + ${line}`),
  ]
  const more = lines.length > 20 ? [`  … and ${lines.length - 20} more lines`] : []
  return [
    `What users can import changed (api/${file}). If it is meant, run \`node scripts/api.ts --write\` and name it in CHANGELOG.md:`,
    ...lines.slice(0, 20),
    ...more,
  ].join('\n')
}

/**
 * What users can import from a package, as text: the names of each entry with their signatures, one line each,
 * without the members of types. Undefined for a package without types.
 */
export function apiReport({ name, folder, manifest }: WorkspacePackage): string | undefined {
  const declarations = new Declarations()
  const shown = new Map<Declaration, string>()
  const sections: string[] = []
  for (const [path, file] of typeEntries(manifest.exports)) {
    const entry = name + path.slice(1)
    const blocks = [...declarations.exportsOf(join(folder, file))]
      .toSorted(([a], [b]) => compare(a, b))
      .map(([exported, found]) => {
        if (typeof found === 'string') return `export { ${exported} } from '${found}'`
        const earlier = shown.get(found)
        if (earlier !== undefined) return `// ${exported}: as in ${earlier}`
        shown.set(found, entry)
        return exported === found.name
          ? found.signature
          : `// exported as ${exported}\n${found.signature}`
      })
    const count = `${blocks.length} ${blocks.length === 1 ? 'name' : 'names'}.`
    sections.push(`## ${entry}\n\n${count}\n\n\`\`\`ts\n${blocks.join('\n')}\n\`\`\`\n`)
  }
  if (sections.length === 0) return undefined
  const intro =
    'What users can import, written by `node scripts/api.ts --write` and compared by `npm run check`.'
  return `# API of ${name}\n\n${intro}\n\n${sections.join('\n')}`
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
