import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseSync } from 'vite'
import type { Node } from '../house/measure.ts'
import type { Exports } from '../workspace.ts'

/** The path of each entry with its declaration file, the main entry first. */
export function typeEntries(
  exports: Exports | undefined,
): Array<readonly [path: string, file: string]> {
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
export interface Declaration {
  readonly name: string
  readonly file: string
  /** Without comments. */
  readonly text: string
  /** With the comments inside, as its users see it. */
  readonly commented: string
  /** The text of the doc comments before it; empty if there is none. */
  readonly doc: string
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

/** Reads declaration files that `tsc` has emitted: with `isolatedDeclarations` each public type is written out. */
export class Declarations {
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
  const declare = (node: Node, isExported: boolean, outer: Node = node): void => {
    const text = plainText(source, node, comments)
    const commented = source.slice(node.start, node.end).replace(/^declare /, '')
    const doc = docBefore(source, outer.start, comments)
    for (const name of declaredNames(node)) {
      const earlier = declarations.get(name)
      const mentions = new Set([...(earlier?.mentions ?? []), ...mentionedNames(node)])
      mentions.delete(name)
      const joined = (before: string | undefined, own: string, by: string): string =>
        [before, own].filter(Boolean).join(by)
      declarations.set(name, {
        name,
        file,
        text: joined(earlier?.text, text, '\n'),
        commented: joined(earlier?.commented, commented, '\n'),
        doc: joined(earlier?.doc, doc, '\n\n'),
        mentions,
      })
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
      else declare(value, false, node)
    } else if (node.type === 'ExportNamedDeclaration') {
      if (node['declaration']) declare(node['declaration'] as Node, true, node)
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

/** The doc comment that ends before a place, with nothing between, as Markdown. */
function docBefore(
  source: string,
  place: number,
  comments: ReadonlyArray<{ readonly end: number; readonly value: string }>,
): string {
  const last = comments.findLast(({ end }) => end <= place)
  if (!last?.value.startsWith('*') || source.slice(last.end, place).trim() !== '') return ''
  return last.value
    .slice(1)
    .replaceAll(/^[ \t]*\* ?/gm, '')
    .replaceAll(/\{@link(?:code|plain)? ([^}|]+)(?:\|[^}]*)?\}/g, '`$1`')
    .trim()
}
