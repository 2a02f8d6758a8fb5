import { parseSync } from 'rolldown/utils'

/** What is changed: `a < b`, the test of an `if`, a literal, or a statement that is left out. */
export type MutantKind = 'operator' | 'condition' | 'constant' | 'statement'

/** One small change that a good test should notice. */
export interface Mutant {
  /** Its number in the file, from 1; the same source gives the same numbers. */
  readonly id: number
  readonly kind: MutantKind
  readonly line: number
  readonly before: string
  readonly after: string
}

export interface PlantedModule {
  /** The module with every mutant in it, each behind the switch, on the lines of the source. */
  readonly code: string
  readonly mutants: readonly Mutant[]
}

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [key: string]: unknown
}

/** The place of a node: its parent, the field that holds it, and whether a function has to run first. */
interface Place {
  readonly parent: Node | undefined
  readonly key: string
  readonly inFunction: boolean
}

const otherOperators: Readonly<Record<string, readonly string[]>> = {
  '===': ['!=='],
  '!==': ['==='],
  '==': ['!='],
  '!=': ['=='],
  '<': ['<=', '>='],
  '<=': ['<', '>'],
  '>': ['>=', '<='],
  '>=': ['>', '<'],
  '+': ['-'],
  '-': ['+'],
  '*': ['/'],
  '/': ['*'],
  '%': ['*'],
  '&': ['|'],
  '|': ['&'],
  '<<': ['>>'],
  '>>': ['<<'],
  '>>>': ['<<'],
  '&&': ['||'],
  '||': ['&&'],
  '??': ['&&'],
}

const comparisons = new Set(['===', '!==', '==', '!=', '<', '<=', '>', '>='])
const removable = new Set([
  'CallExpression',
  'ChainExpression',
  'AwaitExpression',
  'AssignmentExpression',
  'UpdateExpression',
])
const loops = new Set([
  'WhileStatement',
  'DoWhileStatement',
  'ForStatement',
  'ForOfStatement',
  'ForInStatement',
])
const functions = new Set([
  'FunctionDeclaration',
  'FunctionExpression',
  'ArrowFunctionExpression',
  // The value of a field is made when an object is; a static one when the module is loaded.
  'PropertyDefinition',
])
/** Types are erased, but these hold an expression. */
const typedExpressions = new Set(['TSAsExpression', 'TSSatisfiesExpression', 'TSNonNullExpression'])

/**
 * Plants every mutant of a module at the same time. `a < b` becomes
 * `(__mutant(7) ? (a) <= (b) : (a < b))`, so one transformed module serves all its mutants and the switch
 * (switch.ts) says which one is on. Only code inside functions is changed: what runs when a module is
 * loaded belongs to every test that imports it. `__mutant(0)` in loops ends those that a mutant made endless.
 */
export function plantMutants(source: string, file: string): PlantedModule {
  const { program, errors } = parseSync(file, source)
  if (errors.length > 0) throw new SyntaxError(`${file}: ${errors[0]?.message}`)
  const planter = new Planter(source)
  planter.visit(program as unknown as Node, {
    parent: undefined,
    key: '',
    inFunction: false,
  })
  // At the end, because declarations of functions are hoisted and a directive has to stay first.
  const switchFunction = `function __mutant(id) { return globalThis.__skeinMutant?.(${JSON.stringify(file)}, id) === true }`
  return { code: `${planter.code()}\n${switchFunction}\n`, mutants: planter.mutants }
}

class Planter {
  readonly mutants: Mutant[] = []
  readonly #source: string
  readonly #prefixes = new Map<number, string>()
  readonly #suffixes = new Map<number, string>()

  constructor(source: string) {
    this.#source = source
  }

  visit(node: Node, place: Place): void {
    if (node.type.startsWith('TS') && !typedExpressions.has(node.type)) return
    if (node.type === 'ImportDeclaration' || node.type === 'ExportAllDeclaration') return
    if (place.inFunction) this.#plant(node, place)
    if (loops.has(node.type)) this.#guardLoop(node['body'] as Node)
    const isFunction = functions.has(node.type) && node['static'] !== true
    const inFunction = place.inFunction || isFunction
    for (const [key, value] of Object.entries(node)) {
      for (const child of Array.isArray(value) ? value : [value])
        if (isNode(child)) this.visit(child, { parent: node, key, inFunction })
    }
  }

  /** Insertions alone, so nested mutants need no care: the changed branch holds the source's own text. */
  code(): string {
    const places = [...new Set([...this.#prefixes.keys(), ...this.#suffixes.keys()])]
    let code = ''
    let end = 0
    for (const at of places.toSorted((a, b) => a - b)) {
      code += this.#source.slice(end, at)
      code += (this.#suffixes.get(at) ?? '') + (this.#prefixes.get(at) ?? '')
      end = at
    }
    return code + this.#source.slice(end)
  }

  #plant(node: Node, place: Place): void {
    const test = node['test']
    if (isNode(test) && node.type !== 'SwitchCase' && !isChangedAnyway(test))
      this.#replace('condition', test, `!(${this.#text(test)})`)
    switch (node.type) {
      case 'BinaryExpression':
      case 'LogicalExpression':
        return this.#swapOperator(node)
      case 'UnaryExpression':
        if (node['operator'] === '!')
          this.#replace('operator', node, `(${this.#text(node['argument'] as Node)})`)
        return
      case 'Literal':
        return this.#changeConstant(node, place)
      case 'ReturnStatement':
        if (isNode(node['argument'])) this.#replace('statement', node['argument'], 'undefined')
        return
      case 'ThrowStatement':
        return this.#remove(node)
      case 'ExpressionStatement': {
        const expression = node['expression'] as Node
        const callee = expression['callee']
        if (removable.has(expression.type) && !(isNode(callee) && callee.type === 'Super'))
          this.#remove(node)
      }
    }
  }

  #swapOperator(node: Node): void {
    const operator = node['operator'] as string
    const left = node['left'] as Node
    const right = node['right'] as Node
    // Texts have no difference.
    if (operator === '+' && (isText(left) || isText(right))) return
    for (const other of otherOperators[operator] ?? [])
      this.#replace('operator', node, `(${this.#text(left)}) ${other} (${this.#text(right)})`)
  }

  #changeConstant(node: Node, { parent, key }: Place): void {
    if (parent === undefined || !isExpressionPlace(parent, key)) return
    const value = node['value']
    if (typeof value === 'boolean') this.#replace('constant', node, String(!value))
    if (typeof value === 'number') this.#replace('constant', node, `${this.#text(node)} + 1`)
    // A text with spaces is prose for people, which tests need not pin.
    if (typeof value === 'string' && /^\S+$/.test(value)) this.#replace('constant', node, "''")
  }

  #replace(kind: MutantKind, node: Node, after: string): void {
    const id = this.#add(kind, node, after)
    this.#wrap(node, `(__mutant(${id}) ? ${after} : (`, '))')
  }

  #remove(node: Node): void {
    const id = this.#add('statement', node, '')
    this.#wrap(node, `{ if (!__mutant(${id})) `, ' }')
  }

  #guardLoop(body: Node): void {
    if (body.type === 'BlockStatement') this.#prefix(body.start + 1, ' __mutant(0); ')
    else this.#wrap(body, '{ __mutant(0); ', ' }')
  }

  #add(kind: MutantKind, node: Node, after: string): number {
    const id = this.mutants.length + 1
    const line = this.#source.slice(0, node.start).split('\n').length
    this.mutants.push({ id, kind, line, before: this.#text(node), after })
    return id
  }

  /** Nodes are visited from the outside in: what begins later is inner, and ends earlier. */
  #wrap(node: Node, prefix: string, suffix: string): void {
    this.#prefix(node.start, prefix)
    this.#suffixes.set(node.end, suffix + (this.#suffixes.get(node.end) ?? ''))
  }

  #prefix(at: number, text: string): void {
    this.#prefixes.set(at, (this.#prefixes.get(at) ?? '') + text)
  }

  #text(node: Node): string {
    return this.#source.slice(node.start, node.end)
  }
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value
}

/** Its operator is changed to the opposite, which negates it. */
function isChangedAnyway(test: Node): boolean {
  return comparisons.has(String(test['operator'])) || test['operator'] === '!'
}

function isText(node: Node): boolean {
  return (
    node.type === 'TemplateLiteral' ||
    (node.type === 'Literal' && typeof node['value'] === 'string') ||
    (node.type === 'BinaryExpression' &&
      (isText(node['left'] as Node) || isText(node['right'] as Node)))
  )
}

/** A literal may also be a key, a directive, the address of a module or the value of an attribute. */
function isExpressionPlace(parent: Node, key: string): boolean {
  if (key === 'key') return parent['computed'] === true
  if (key === 'source' || key === 'directive' || parent.type === 'JSXAttribute') return false
  return parent.type !== 'ExpressionStatement'
}
