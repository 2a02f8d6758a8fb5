import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'vite'
import { root } from '../workspace.ts'

/** What the sources say about the codes of errors. */
export interface ErrorCodes {
  /** Code → the files that use it. */
  readonly files: ReadonlyMap<string, readonly string[]>
  /** Code → its messages as patterns; codes with a message that is made elsewhere are left out. */
  readonly messages: ReadonlyMap<string, readonly RegExp[]>
}

/**
 * Every code that an error of ours can have: the value of a property `code`, the members of a type whose name ends
 * in `ErrorCode`, and the values of constants that list codes (`ErrorCode`, `REASON_CODES`). Codes of errors are in
 * capitals; lower case is for issues and warnings, which are data.
 */
export function readErrorCodes(): ErrorCodes {
  const files = new Map<string, string[]>()
  const patterns = new Map<string, Array<RegExp | undefined>>()
  for (const file of globSync('packages/*/{src,bin}/**/*.{ts,tsx}', { cwd: root }).toSorted()) {
    if (/\.test(?:-d)?\.tsx?$|__fixtures__/.test(file)) continue
    const text = readFileSync(join(root, file), 'utf8')
    if (!/\bcode\b|Code\b|REASON_CODES/.test(text)) continue
    const found = codesIn(file, text)
    for (const code of found.codes) files.set(code, [...(files.get(code) ?? []), file])
    for (const [code, pattern] of found.messages)
      patterns.set(code, [...(patterns.get(code) ?? []), pattern])
  }
  const messages = [...patterns].flatMap(([code, all]) => {
    const known = all.filter((pattern) => pattern !== undefined)
    return known.length === all.length ? [[code, known] as const] : []
  })
  return { files, messages: new Map(messages) }
}

interface Node {
  readonly type: string
  readonly [key: string]: unknown
}

interface Found {
  readonly codes: Set<string>
  readonly messages: Array<readonly [code: string, pattern: RegExp | undefined]>
}

function codesIn(file: string, text: string): Found {
  const found: Found = { codes: new Set(), messages: [] }
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) for (const each of node) visit(each)
    if (!isNode(node)) return
    const isCode = /^Property(?:Definition)?$/.test(node.type) && nameOf(node['key']) === 'code'
    if (isCode) for (const code of valuesOf(node['value'])) found.codes.add(code)
    const name = nameOf(node['id'])
    if (node.type === 'TSTypeAliasDeclaration' && /ErrorCode$|VerifierCode$/.test(name))
      for (const code of literalsOf(node['typeAnnotation'])) found.codes.add(code)
    if (node.type === 'VariableDeclarator' && /ErrorCode$|^REASON_CODES$/.test(name))
      for (const code of literalsOf(node['init'])) found.codes.add(code)
    if (node.type === 'NewExpression' || node.type === 'CallExpression') {
      const [message, options] = node['arguments'] as unknown[]
      for (const property of propertiesOf(options))
        if (nameOf(property['key']) === 'code')
          for (const code of valuesOf(property['value']))
            found.messages.push([code, patternOf(message)])
    }
    for (const value of Object.values(node)) if (typeof value === 'object') visit(value)
  }
  visit(parseSync(file, text).program)
  return found
}

function propertiesOf(node: unknown): readonly Node[] {
  return isNode(node) && node.type === 'ObjectExpression' ? (node['properties'] as Node[]) : []
}

/** The codes that an expression can give: itself, or the branches of a condition. */
function valuesOf(node: unknown): string[] {
  if (!isNode(node)) return []
  if (node.type === 'Literal') return isCode(node['value']) ? [node['value']] : []
  if (node.type === 'ConditionalExpression')
    return [...valuesOf(node['consequent']), ...valuesOf(node['alternate'])]
  if (node.type === 'LogicalExpression')
    return [...valuesOf(node['left']), ...valuesOf(node['right'])]
  return /^TS(?:As|Satisfies)Expression$/.test(node.type) ? valuesOf(node['expression']) : []
}

function literalsOf(node: unknown): string[] {
  if (Array.isArray(node)) return node.flatMap(literalsOf)
  if (!isNode(node)) return []
  if (node.type === 'Literal') return valuesOf(node)
  return Object.values(node).flatMap((value) =>
    typeof value === 'object' ? literalsOf(value) : [],
  )
}

function isCode(value: unknown): value is string {
  return typeof value === 'string' && /^[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*$/.test(value)
}

/** A message as a pattern: the texts between the values of a template stand for themselves. */
function patternOf(message: unknown): RegExp | undefined {
  if (!isNode(message)) return undefined
  if (message.type === 'Literal') return exactly([String(message['value'])])
  if (message.type !== 'TemplateLiteral') return undefined
  const quasis = message['quasis'] as ReadonlyArray<{ readonly value: { readonly cooked: string } }>
  return exactly(quasis.map(({ value }) => value.cooked))
}

function exactly(texts: readonly string[]): RegExp {
  const escaped = texts.map((text) =>
    text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll(/\s+/g, '\\s+'),
  )
  return new RegExp(`^${escaped.join('.*')}$`)
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value
}

function nameOf(node: unknown): string {
  return isNode(node) ? String(node['name'] ?? node['value'] ?? '') : ''
}
