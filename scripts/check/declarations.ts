import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseSync } from 'vite'
import type { Node } from '../source/measure.ts'
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
  /** One line per overload, without comments and without the members of interfaces, classes and object types. */
  readonly signature: string
  /** With the comments inside, as its users see it. */
  readonly commented: string
  /** The text of the doc comments before it; empty if there is none. */
  readonly doc: string
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
    const signature = signatureOf(source, node, comments)
    const commented = source.slice(node.start, node.end).replace(/^declare /, '')
    const doc = docBefore(source, outer.start, comments)
    for (const name of declaredNames(node)) {
      const earlier = declarations.get(name)
      const joined = (before: string | undefined, own: string, by: string): string =>
        [before, own].filter(Boolean).join(by)
      declarations.set(name, {
        name,
        file,
        signature: joined(earlier?.signature, signature, '\n'),
        commented: joined(earlier?.commented, commented, '\n'),
        doc: joined(earlier?.doc, doc, '\n\n'),
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

interface Range {
  readonly start: number
  readonly end: number
}

/**
 * A declaration on one line, without comments and `declare`: of an interface or class what comes before its
 * members, of a function all, of other types and constants `{ … }` in the place of members.
 */
function signatureOf(source: string, node: Node, comments: readonly Range[]): string {
  const body = /^(TSInterface|Class)Declaration$/.test(node.type) && (node['body'] as Range)
  const end = body ? body.start : node.end
  const isFunction = /Function/.test(node.type)
  const hidden = isFunction ? [] : objectTypes(node)
  const left = [...comments, ...hidden]
    .filter((range) => range.start >= node.start && range.end <= end)
    .toSorted((a, b) => a.start - b.start)
  let text = ''
  let place = node.start
  for (const range of left) {
    if (range.start < place) continue
    text += source.slice(place, range.start) + (hidden.includes(range) ? '{ … }' : '')
    place = range.end
  }
  return (text + source.slice(place, end))
    .replaceAll(/\s+/g, ' ')
    .replace(/^declare /, '')
    .replace(/[; ]+$/, '')
}

/** The places of object types, the outermost ones, in a declaration. */
function objectTypes(value: unknown): Range[] {
  if (typeof value !== 'object' || value === null) return []
  const node = value as Node
  if (node.type === 'TSTypeLiteral') return [node]
  return Object.values(node).flatMap(objectTypes)
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
