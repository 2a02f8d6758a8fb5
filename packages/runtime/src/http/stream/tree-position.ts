/**
 * How far a reader has come in a thread and its descendants. Children are told by their place among
 * the children of their parent, so that a position is short: `12(5,7.2(1),0)` is event 12 of the thread,
 * 5 of its first child, 7.2 of the second, 1 of the second's first child, and nothing yet of the third.
 */
export interface TreePosition {
  id: string
  readonly children: TreePosition[]
}

/** Deeper than any tree of threads. */
const MAX_DEPTH = 64

export function formatPosition({ id, children }: TreePosition): string {
  return children.length === 0 ? id : `${id}(${children.map(formatPosition).join(',')})`
}

/** Undefined when the text is no position. */
export function parsePosition(text: string): TreePosition | undefined {
  let at = 0
  const number = /\d+(\.\d+)?/y
  const parse = (depth: number): TreePosition | undefined => {
    number.lastIndex = at
    const id = number.exec(text)?.[0]
    if (id === undefined || depth > MAX_DEPTH) return undefined
    at += id.length
    const children: TreePosition[] = []
    if (text[at] !== '(') return { id, children }
    do {
      at += 1
      const child = parse(depth + 1)
      if (!child) return undefined
      children.push(child)
    } while (text[at] === ',')
    if (text[at] !== ')') return undefined
    at += 1
    return { id, children }
  }
  const position = parse(0)
  return position && at === text.length ? position : undefined
}
