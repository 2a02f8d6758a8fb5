import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { parseSync } from 'vite'
import type { Node } from '../house/measure.ts'
import { root } from '../workspace.ts'
import type { Exports, WorkspacePackage } from '../workspace.ts'

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
    `What users can import changed (api/${file}). If it is meant, run \`npm run api -- --write\` and name it in CHANGELOG.md:`,
    ...lines.slice(0, 20),
    ...more,
  ].join('\n')
}

/**
 * What users see of a package, as text: the names of each entry with their declarations, then the declarations
 * that have no public name but stand in the type of one that has. Undefined for a package without types.
 */
export function apiReport({ name, folder, manifest }: WorkspacePackage): string | undefined {
  const modules = new Modules()
  const shown = new Map<Declaration, string>()
  const sections: string[] = []
  for (const [path, file] of typeEntries(manifest.exports)) {
    const entry = name + path.slice(1)
    const blocks = [...modules.exportsOf(join(folder, file))]
      .toSorted(([a], [b]) => compare(a, b))
      .map(([exported, found]) => {
        if (typeof found === 'string') return `export { ${exported} } from '${found}'`
        const earlier = shown.get(found)
        if (earlier !== undefined) return `// ${exported}: as in ${earlier}`
        shown.set(found, entry)
        return exported === found.name ? found.text : `// exported as ${exported}\n${found.text}`
      })
    sections.push(
      section(entry, `${blocks.length} ${blocks.length === 1 ? 'name' : 'names'}.`, blocks),
    )
  }
  if (sections.length === 0) return undefined
  const behind = [...modules.behind([...shown.keys()])]
    .toSorted((a, b) => compare(a.name, b.name) || compare(a.text, b.text))
    .map(({ text }) => text)
  if (behind.length > 0)
    sections.push(
      section('Behind these', 'Types without a public name, in those that have one.', behind),
    )
  const intro =
    'What users can import, written by `npm run api -- --write` and compared by `npm run check`.'
  return `# API of ${name}\n\n${intro}\n\n${sections.join('\n')}`
}

function section(title: string, note: string, blocks: readonly string[]): string {
  return `## ${title}\n\n${note}\n\n\`\`\`ts\n${blocks.join('\n\n')}\n\`\`\`\n`
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** The path of each entry with its declaration file, the main entry first. */
function typeEntries(exports: Exports | undefined): Array<readonly [path: string, file: string]> {
  if (exports === undefined || exports === null || typeof exports === 'string') return []
  return Object.entries(exports).flatMap(([path, target]) => {
    const file = typesOf(target)
    return file === undefined ? [] : [[path, file] as const]
  })
}

function typesOf(target: Exports): string | undefined {
  if (target === null || typeof target === 'string') return undefined
  const { types } = target
  if (typeof types === 'string') return types
  for (const child of Object.values(target)) {
    const found = typesOf(child)
    if (found !== undefined) return found
  }
  return undefined
}

/** Everything that one file declares under one name: an interface and a constant, or overloads, are one. */
interface Declaration {
  readonly name: string
  readonly file: string
  readonly text: string
  /** The names that it mentions. */
  readonly mentions: ReadonlySet<string>
}

interface Module {
  readonly declarations: ReadonlyMap<string, Declaration>
  /** Local names of imports, with the file or package and the name there. */
  readonly imports: ReadonlyMap<string, Reference>
  readonly exports: ReadonlyMap<string, Reference>
  readonly stars: readonly string[]
}

interface Reference {
  readonly name: string
  /** A file, a package, or undefined for the module itself. */
  readonly from: string | undefined
}

class Modules {
  readonly #read = new Map<string, Module>()

  /** The exported names of a file, each with its declaration, or with the package that it comes from. */
  exportsOf(file: string): Map<string, Declaration | string> {
    const found = new Map<string, Declaration | string>()
    const { exports, stars } = this.#module(file)
    for (const star of stars)
      if (isFile(star)) for (const [name, one] of this.exportsOf(star)) found.set(name, one)
    for (const [exported, reference] of exports) {
      const target = this.#resolve(file, reference)
      if (target === undefined)
        throw new Error(`${file} exports ${exported}, which is not declared.`)
      found.set(exported, target)
    }
    return found
  }

  /** The declarations that these mention, and those mention in turn, without these. */
  behind(known: readonly Declaration[]): Set<Declaration> {
    const found = new Set<Declaration>()
    const visit = (declaration: Declaration): void => {
      for (const name of declaration.mentions) {
        const target = this.#resolve(declaration.file, { name, from: undefined })
        if (target === undefined || typeof target === 'string') continue
        if (found.has(target) || known.includes(target)) continue
        found.add(target)
        visit(target)
      }
    }
    for (const declaration of known) visit(declaration)
    return found
  }

  #resolve(file: string, { name, from }: Reference): Declaration | string | undefined {
    if (from === undefined) {
      const { declarations, imports } = this.#module(file)
      const imported = imports.get(name)
      return declarations.get(name) ?? (imported && this.#resolve(file, imported))
    }
    return isFile(from) ? this.exportsOf(from).get(name) : from
  }

  #module(file: string): Module {
    const known = this.#read.get(file)
    if (known) return known
    const read = readModule(file)
    this.#read.set(file, read)
    return read
  }
}

function isFile(from: string): boolean {
  return from.endsWith('.d.ts')
}

function readModule(file: string): Module {
  const source = readFileSync(file, 'utf8')
  const { program, comments, errors } = parseSync(file, source)
  if (errors.length > 0) throw new Error(`${file} cannot be parsed: ${errors[0]?.message}`)
  const from = (node: unknown): string | undefined => {
    const { value } = (node ?? {}) as { value?: string }
    return value?.startsWith('.') ? join(dirname(file), value.replace(/\.[jt]s$/, '.d.ts')) : value
  }
  const declarations = new Map<string, Declaration>()
  const imports = new Map<string, Reference>()
  const exports = new Map<string, Reference>()
  const stars: string[] = []
  const declare = (node: Node, isExported: boolean): void => {
    const text = plainText(source, node, comments)
    for (const name of declaredNames(node)) {
      const earlier = declarations.get(name)
      const mentions = new Set([...(earlier?.mentions ?? []), ...mentionedNames(node)])
      mentions.delete(name)
      const whole = earlier ? `${earlier.text}\n${text}` : text
      declarations.set(name, { name, file, text: whole, mentions })
      if (isExported) exports.set(name, { name, from: undefined })
    }
  }
  for (const node of program.body as unknown as readonly Node[]) {
    if (node.type === 'ImportDeclaration') {
      for (const { imported, local } of node['specifiers'] as readonly Record<string, Name>[])
        imports.set(nameOf(local), { name: nameOf(imported, '*'), from: from(node['source']) })
    } else if (node.type === 'ExportAllDeclaration') {
      stars.push(from(node['source']) ?? '')
    } else if (node.type === 'ExportDefaultDeclaration') {
      const value = node['declaration'] as Node
      if (value.type === 'Identifier')
        exports.set('default', { name: nameOf(value as unknown as Name), from: undefined })
      else declare(value, false)
    } else if (node.type === 'ExportNamedDeclaration') {
      if (node['declaration']) declare(node['declaration'] as Node, true)
      for (const { local, exported } of node['specifiers'] as readonly Record<string, Name>[])
        exports.set(nameOf(exported), { name: nameOf(local), from: from(node['source']) })
    } else {
      declare(node, false)
    }
  }
  return { declarations, imports, exports, stars }
}

interface Name {
  readonly name?: string
  readonly value?: unknown
}

function nameOf(node: Name | undefined, otherwise = ''): string {
  return node?.name ?? (node?.value === undefined ? otherwise : String(node.value))
}

function declaredNames(node: Node): string[] {
  const several = node['declarations'] as ReadonlyArray<{ id: Name }> | undefined
  const names = several ? several.map(({ id }) => nameOf(id)) : [nameOf(node['id'] as Name)]
  return names.filter((name) => name !== '')
}

/** Fields whose identifiers refer to a declaration; identifiers elsewhere are names of members and parameters. */
const REFERENCES: ReadonlySet<string> = new Set([
  'typeName',
  'exprName',
  'expression',
  'superClass',
  'left',
])

function* mentionedNames(value: unknown, isReference = false): Generator<string> {
  if (typeof value !== 'object' || value === null) return
  const node = value as Partial<Node>
  if (isReference && node.type === 'Identifier') yield String(node['name'])
  for (const [field, child] of Object.entries(value)) {
    const isComputedKey = field === 'key' && node['computed'] === true
    yield* mentionedNames(child, REFERENCES.has(field) || isComputedKey)
  }
}

/** The text of a declaration without comments and without `declare`. */
function plainText(
  source: string,
  { start, end }: Node,
  comments: ReadonlyArray<{ readonly start: number; readonly end: number }>,
): string {
  let text = ''
  let place = start
  for (const comment of comments) {
    if (comment.start < start || comment.end > end) continue
    text += source.slice(place, comment.start)
    place = comment.end
  }
  text += source.slice(place, end)
  return text
    .replaceAll(/^[ \t]*\n|[ \t]+$/gm, '')
    .replace(/^declare /, '')
    .replace(/;$/, '')
}
