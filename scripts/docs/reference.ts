import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseSync } from 'vite'
import type { Exports, WorkspacePackage } from '../workspace.ts'

/** An exported name with its declaration as users see it. */
export interface Declared {
  readonly name: string
  /** Class, function, interface and so on. */
  readonly kind: string
  /** Its doc comment as Markdown; empty if there is none. */
  readonly doc: string
  /** The declaration without comments of its own, overloads one after another. */
  readonly signature: string
  /** The declaration file. */
  readonly file: string
}

export interface Entry {
  /** What users import, `@skein/ai/testing`. */
  readonly specifier: string
  readonly names: readonly Declared[]
}

/**
 * Every exported name of every entry of a package, read from the declarations that `tsc -b` has emitted:
 * `isolatedDeclarations` writes each public type out, so nothing has to be inferred here.
 */
export function entriesOf({ name, folder, manifest }: WorkspacePackage): Entry[] {
  return Object.entries((manifest.exports ?? {}) as Record<string, Exports>).flatMap(
    ([path, target]) => {
      const types = typesOf(target)
      if (types === undefined) return []
      const file = join(folder, types)
      if (!existsSync(file)) throw new Error(`${file} was not emitted; \`tsc -b\` comes first.`)
      const names = [...exportsOf(file).values()].toSorted((a, b) => order(a.name, b.name))
      return [{ specifier: name + path.slice(1), names }]
    },
  )
}

function order(a: string, b: string): number {
  // Functions and constants before types: lower case first, then by letter.
  const isType = (text: string): number => (/^[A-Z]/.test(text) ? 1 : 0)
  return isType(a) - isType(b) || a.localeCompare(b, 'en')
}

function typesOf(target: Exports): string | undefined {
  if (typeof target !== 'object' || target === null) return undefined
  const types = target['types']
  if (typeof types === 'string') return types
  return Object.values(target)
    .map(typesOf)
    .find((found) => found !== undefined)
}

interface Module {
  readonly own: Map<string, Declared>
  readonly exported: Map<string, Declared>
}

const modules = new Map<string, Module>()

function exportsOf(file: string): ReadonlyMap<string, Declared> {
  return moduleOf(file).exported
}

type Node = {
  readonly type: string
  readonly start: number
  readonly end: number
}

function moduleOf(file: string): Module {
  const known = modules.get(file)
  if (known) return known
  const module: Module = { own: new Map(), exported: new Map() }
  modules.set(file, module)
  const text = readFileSync(file, 'utf8')
  const { program, comments } = parseSync(file, text)
  const docBefore = (start: number): string => {
    const last = comments.findLast((comment) => comment.end <= start)
    if (!last || last.type !== 'Block' || !last.value.startsWith('*')) return ''
    return text.slice(last.end, start).trim() === '' ? docText(last.value) : ''
  }
  const declare = (declaration: Node, outer: Node, isExported: boolean): void => {
    const { names, kind } = namesOf(declaration)
    for (const name of names) {
      const own = text
        .slice(declaration.start, declaration.end)
        .replace(/^declare /, '')
        .replaceAll(/^\s*private .*$\n?|^\s*#private;$\n?/gm, '')
      const before = module.own.get(name)
      const declared: Declared = {
        name,
        kind: before?.kind ?? kind,
        doc: [before?.doc, docBefore(outer.start)].filter(Boolean).join('\n\n'),
        signature: before ? `${before.signature}\n${own}` : own,
        file,
      }
      module.own.set(name, declared)
      if (isExported) module.exported.set(name, declared)
    }
  }
  const resolve = (source: string): ReadonlyMap<string, Declared> | undefined =>
    source.startsWith('.')
      ? exportsOf(join(dirname(file), source.replace(/\.[jt]s$/, '.d.ts')))
      : undefined
  for (const node of program.body) {
    if (node.type === 'ExportAllDeclaration') {
      for (const [name, declared] of resolve(node.source.value) ?? [])
        if (!node.exported) module.exported.set(name, declared)
    } else if (node.type === 'ExportNamedDeclaration') {
      if (node.declaration) declare(node.declaration, node, true)
      const from = node.source ? resolve(node.source.value) : module.own
      for (const { local, exported } of node.specifiers) {
        const [name, inner] = [nameOf(exported), nameOf(local)]
        const declared = from?.get(inner)
        if (declared) module.exported.set(name, { ...declared, name })
        else if (node.source)
          module.exported.set(name, {
            name,
            kind: 'type',
            doc: '',
            signature: `export { ${inner} } from '${node.source.value}'`,
            file,
          })
      }
    } else if (/Declaration$/.test(node.type)) declare(node, node, false)
  }
  return module
}

const kinds: Readonly<Record<string, string>> = {
  ClassDeclaration: 'class',
  TSDeclareFunction: 'function',
  FunctionDeclaration: 'function',
  TSInterfaceDeclaration: 'interface',
  TSTypeAliasDeclaration: 'type',
  VariableDeclaration: 'constant',
}

function namesOf(node: Node): { readonly names: readonly string[]; readonly kind: string } {
  const kind = kinds[node.type] ?? 'type'
  // The parser's types list every node; these two fields are all that declarations differ in here.
  const { id, declarations } = node as {
    readonly id?: { readonly name?: string }
    readonly declarations?: ReadonlyArray<{ readonly id: { readonly name?: string } }>
  }
  const named = declarations?.map((declaration) => declaration.id) ?? [id]
  return { names: named.flatMap((each) => (each?.name === undefined ? [] : [each.name])), kind }
}

function nameOf(node: { readonly name?: string; readonly value?: unknown }): string {
  return node.name ?? String(node.value)
}

/** The text of a doc comment; examples that are indented by four become fences. */
function docText(comment: string): string {
  const text = comment
    .slice(1)
    .replaceAll(/^[ \t]*\* ?/gm, '')
    .replaceAll(/\{@link(?:code|plain)? ([^}|]+)(?:\|[^}]*)?\}/g, '`$1`')
    .trim()
  return text.replaceAll(
    /(^|\n\n)((?: {4,}.*\n?|\n(?= {4}))+)/g,
    (_, before: string, code: string) => {
      const lines = code.trimEnd().split('\n')
      return `${before}\`\`\`ts\n${lines.map((line) => line.slice(4)).join('\n')}\n\`\`\`\n`
    },
  )
}

/** The reference of a package as a page. */
export function referencePage(name: string, entries: readonly Entry[]): string {
  const shown = new Map<string, string>()
  const parts = entries.map(({ specifier, names }) => {
    const described = names.map((declared) => {
      const key = `${declared.file} ${declared.name}`
      const first = shown.get(key)
      if (first === undefined) shown.set(key, specifier)
      const body =
        first === undefined
          ? `${declared.doc === '' ? '' : `${declared.doc}\n\n`}\`\`\`ts\n${tidy(declared.signature)}\n\`\`\``
          : `The same as in \`${first}\`.`
      return `### \`${declared.name}\`\n\n${body}\n`
    })
    return `## ${specifier}\n\n${described.join('\n')}`
  })
  return `# ${name}: reference\n\nEvery name that \`${name}\` exports, by entry, with its declaration. Made from the types.\n\n${parts.join('\n')}`
}

/** Declarations have no `export` where they are read, and two spaces of indentation. */
function tidy(signature: string): string {
  return signature
    .replaceAll(/^export (?:declare )?/gm, '')
    .replaceAll(/^( {4})+/gm, (spaces) => ' '.repeat(spaces.length / 2))
    .trim()
}
