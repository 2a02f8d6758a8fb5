import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseSync } from 'vite'

/** A node of the syntax tree, as far as it is read here. */
export interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

/** One source file, counted. */
export interface SourceFile {
  /** Relative to the repository. */
  readonly path: string
  readonly lines: number
  /** Lines of comments. */
  readonly comments: number
  /** Paths of the files of the same package that it imports; `byType` where only types are. */
  readonly imports: readonly { readonly path: string; readonly byType: boolean }[]
  /** The other packages of the workspace that it imports, by folder name, types included. */
  readonly packageImports: readonly string[]
  /** Length in lines of each function, methods and arrow functions with a body included. */
  readonly functions: readonly { readonly name: string; readonly lines: number }[]
  /** Top-level functions that are not exported and named only once besides their declaration. */
  readonly usedOnce: readonly { readonly name: string; readonly lines: number }[]
  /** Names that the file declares and exports. */
  readonly exports: readonly { readonly name: string; readonly documented: boolean }[]
  readonly conditionalSpreads: number
  readonly casts: number
  /** Names of variables, those at the top level included. */
  readonly locals: readonly string[]
}

const IRREGULAR_PARTICIPLES: ReadonlySet<string> = new Set(
  (
    'known found given told seen made kept taken held read sent left built chosen shown done gone written ' +
    'meant met lost paid said set split spent cut drawn driven put run begun broken'
  ).split(' '),
)

/** Whether a name says how a value was reached, such as `known` or `asked`, and not what it is. */
export function isParticiple(name: string): boolean {
  return IRREGULAR_PARTICIPLES.has(name) || /^[a-z]{2,}[^e]ed$/.test(name)
}

/** Reads every source file of the packages; tests are left out. */
export function measure(root: string, pattern = 'packages/*/src/**/*.{ts,tsx}'): SourceFile[] {
  return globSync(pattern, { cwd: root })
    .filter((path) => !/\.test(-d)?\.tsx?$/.test(path))
    .map((path) => path.replaceAll('\\', '/'))
    .toSorted()
    .map((path) => measureFile(path, readFileSync(join(root, path), 'utf8')))
}

export function measureFile(path: string, text: string): SourceFile {
  const { program, comments } = parseSync(path, text)
  // The parser's own types name every node; here only a few fields of any node are read.
  const body = program.body as unknown as readonly Node[]
  const lineOf = lineCounter(text)
  const linesOf = ({ start, end }: Node): number => lineOf(end) - lineOf(start) + 1
  const functions: { name: string; lines: number }[] = []
  const uses = new Map<string, number>()
  let conditionalSpreads = 0
  let casts = 0
  const locals: string[] = []
  walk(body, (node, name) => {
    if (isFunction(node) && node['body'] && (node['body'] as Node).type === 'BlockStatement')
      functions.push({ name, lines: linesOf(node) })
    if (node.type === 'Identifier') {
      const word = node['name'] as string
      uses.set(word, (uses.get(word) ?? 0) + 1)
    }
    if (node.type === 'TSAsExpression') casts++
    if (node.type === 'VariableDeclarator') {
      const { type, name: variable } = node['id'] as Node
      if (type === 'Identifier') locals.push(variable as string)
    }
    if (node.type === 'SpreadElement' && isConditionalObject(node['argument'] as Node))
      conditionalSpreads++
  })
  const documented = new Set(
    comments
      .filter(({ type, value }) => type === 'Block' && value.startsWith('*'))
      .map(({ end }) => nextCode(text, end)),
  )
  return {
    path,
    lines: lineOf(text.length) - (text.endsWith('\n') ? 1 : 0),
    comments: comments.reduce((sum, { start, end }) => sum + lineOf(end) - lineOf(start) + 1, 0),
    imports: importsOf(path, body),
    packageImports: packageImportsOf(body),
    functions,
    usedOnce: body
      .filter(({ type, id }) => type === 'FunctionDeclaration' && id)
      .map((node) => ({ name: (node['id'] as Node)['name'] as string, lines: linesOf(node) }))
      .filter(({ name }) => uses.get(name) === 2),
    exports: body
      .filter(({ type, declaration }) => type === 'ExportNamedDeclaration' && declaration)
      .flatMap((node) =>
        declaredNames(node['declaration'] as Node).map((name) => ({
          name,
          documented: documented.has(node.start),
        })),
      ),
    conditionalSpreads,
    casts,
    locals,
  }
}

export function lineCounter(text: string): (offset: number) => number {
  const starts = [0]
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1)
  return (offset) => {
    let low = 0
    let high = starts.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (starts[middle]! <= offset) low = middle + 1
      else high = middle
    }
    return low
  }
}

function nextCode(text: string, from: number): number {
  let at = from
  while (/\s/.test(text[at] ?? '')) at++
  return at
}

function isFunction({ type }: Node): boolean {
  return /^(FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/.test(type)
}

/** `a && { b }` or `a ? { b } : {}`. */
function isConditionalObject(argument: Node): boolean {
  if (argument.type === 'ParenthesizedExpression')
    return isConditionalObject(argument['expression'] as Node)
  if (argument.type === 'LogicalExpression')
    return argument['operator'] === '&&' && isObject(argument['right'] as Node)
  return (
    argument.type === 'ConditionalExpression' &&
    isObject(argument['consequent'] as Node) &&
    isObject(argument['alternate'] as Node)
  )
}

function isObject({ type }: Node): boolean {
  return type === 'ObjectExpression'
}

/** Visits every node with the name it is known by: its own, or that of the variable or method. */
export function walk(value: unknown, visit: (node: Node, name: string) => void, name = ''): void {
  if (Array.isArray(value)) {
    for (const item of value) walk(item, visit, name)
    return
  }
  if (typeof value !== 'object' || value === null) return
  const node = value as Node
  const named = (node['id'] ?? node['key']) as { readonly name?: string } | null | undefined
  const own = named?.name ?? name
  if (typeof node.type === 'string') visit(node, own)
  for (const key in node) if (key !== 'type') walk(node[key], visit, own)
}

/** The names that a declaration declares. */
export function declaredNames(declaration: Node): string[] {
  if (declaration.type === 'VariableDeclaration')
    return (declaration['declarations'] as Node[]).map(({ id }) => (id as Node)['name'] as string)
  return [(declaration['id'] as Node)['name'] as string]
}

function importsOf(path: string, body: readonly Node[]): SourceFile['imports'] {
  return body.flatMap((node) => {
    const source = (node['source'] as { readonly value?: string } | null | undefined)?.value
    if (!source?.startsWith('.')) return []
    const kind = node['importKind'] ?? node['exportKind']
    const specifiers = (node['specifiers'] ?? []) as Node[]
    const byType =
      kind === 'type' ||
      (specifiers.length > 0 &&
        specifiers.every((one) => (one['importKind'] ?? one['exportKind']) === 'type'))
    return [{ path: join(dirname(path), source).replaceAll('\\', '/'), byType }]
  })
}

function packageImportsOf(body: readonly Node[]): string[] {
  const sources = body.map((node) => (node['source'] as { readonly value?: string } | null)?.value)
  const folders = sources.flatMap((source) => {
    const [scope, name] = source?.split('/') ?? []
    if (scope === '@skein' && name !== undefined) return [name]
    return scope === 'skein' ? ['cli'] : []
  })
  return [...new Set(folders)]
}
