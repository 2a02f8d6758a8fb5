import { parseSync } from 'vite'
import type { Node } from '../source/measure.ts'

/**
 * Marks the values of a module's constants, `const SET = new Set(WORDS)`, as free of side effects. The
 * packages promise that of every module (`sideEffects: false`), but bundlers read the promise by file: once
 * modules share a chunk, a value that could have a side effect (a call, the property of an object, which
 * may be a getter) stays in every application that uses anything else of the chunk. A call gets a mark; any
 * other value becomes the result of a marked function.
 */
export function markPure(path: string, code: string): string {
  const { program } = parseSync(path, code)
  const insertions: Array<readonly [place: number, text: string]> = []
  for (const statement of program.body as unknown as readonly Node[]) {
    const declaration = (statement['declaration'] ?? statement) as Node
    if (declaration.type !== 'VariableDeclaration') continue
    for (const { id, init } of declaration['declarations'] as readonly Node[]) {
      if (!init || (id as Node).type !== 'Identifier') continue
      const { start, end } = init as Node
      const found = [...loadedNodes(init)]
      if (found.some(({ type }) => /^(?:Member|Binary|Spread)/.test(type)))
        insertions.push([start, '/* @__PURE__ */ (() => ('], [end, '))()'])
      else
        for (const { type, start: place } of found)
          if (/^(?:Call|New)Expression$/.test(type)) insertions.push([place, '/* @__PURE__ */ '])
    }
  }
  let marked = code
  for (const [place, text] of insertions.toSorted(([a], [b]) => b - a))
    marked = marked.slice(0, place) + text + marked.slice(place)
  return marked
}

/** The nodes that run when the module is loaded; what is in functions and classes runs later. */
function* loadedNodes(value: unknown): Generator<Node> {
  if (typeof value !== 'object' || value === null) return
  const node = value as Node
  if (typeof node.type === 'string') {
    if (/Function|^Class|^TSType/.test(node.type)) return
    yield node
  }
  for (const child of Object.values(value)) yield* loadedNodes(child)
}
