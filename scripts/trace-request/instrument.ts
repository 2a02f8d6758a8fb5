import { parseSync } from 'vite'

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [field: string]: unknown
}

/** A function of a source file and the line it begins in. */
export interface Place {
  readonly file: string
  readonly line: number
  readonly name: string
}

/**
 * The same source, in which every named function first reports that it was entered: it calls
 * `globalThis.enteredFunction` with its number in `places`. Works on TypeScript text and keeps its lines.
 */
export function instrument(file: string, text: string, places: Place[]): string {
  const inserts: { readonly at: number; readonly text: string }[] = []
  visit(parseSync(file, text).program.body as unknown, '')
  let result = text
  for (const { at, text: added } of inserts.toSorted((a, b) => b.at - a.at))
    result = result.slice(0, at) + added + result.slice(at)
  return result

  function visit(value: unknown, outer: string): void {
    if (Array.isArray(value)) {
      for (const item of value) visit(item, outer)
      return
    }
    if (typeof value !== 'object' || value === null) return
    const node = value as Node
    const named = (node['id'] ?? node['key']) as { readonly name?: string } | null | undefined
    const name = named?.name ?? outer
    if (/^(Function|ArrowFunction)(Declaration|Expression)$/.test(node.type) && name !== '')
      enter(node, name)
    for (const key in node) if (key !== 'type') visit(node[key], isBody(node, key) ? '' : name)
  }

  function enter({ start, body }: Node, name: string): void {
    const block = body as Node | null
    if (!block) return // an overload
    const line = text.slice(0, start).split('\n').length
    const number = places.push({ file, line, name }) - 1
    const call = `globalThis.enteredFunction(${number})`
    if (block.type === 'BlockStatement') inserts.push({ at: block.start + 1, text: `${call};` })
    else {
      inserts.push({ at: block.start, text: `(${call},` })
      inserts.push({ at: block.end, text: ')' })
    }
  }
}

/** Functions inside a body have names of their own, or none. */
function isBody(node: Node, key: string): boolean {
  return key === 'body' && /Function/.test(node.type)
}
