/**
 * How far a reader has come in a thread and its descendants. A child is identified by its index among the
 * children of its parent, which keeps positions short: `12(5,7.2(1),0)` is event 12 of the thread, event 5 of
 * its first child, 7.2 of the second, 1 of the second's first child, and no event yet of the third. A child
 * that is not read has `x` in place of a number.
 */
export interface TreePosition {
  id: string
  readonly children: TreePosition[]
}

/** Marks a child that is not read. */
export const SKIPPED = 'x'

/** Marks the end of a child's log until the number of its last event is known; never sent. */
export const LATER = 'end'

/** A limit that is deeper than any tree of threads. */
const MAX_DEPTH = 64

/** Formats a position as text. */
export function formatPosition({ id, children }: TreePosition): string {
  return children.length === 0 ? id : `${id}(${children.map(formatPosition).join(',')})`
}

/** Parses a position; returns undefined when the text is not a position. */
export function parsePosition(text: string): TreePosition | undefined {
  let at = 0
  const number = /\d+(\.\d+)?|x/y
  const parse = (depth: number): TreePosition | undefined => {
    number.lastIndex = at
    const id = number.exec(text)?.[0]
    if (id === undefined || depth > MAX_DEPTH || (id === SKIPPED && depth === 0)) return undefined
    at += id.length
    const children: TreePosition[] = []
    if (text[at] !== '(' || id === SKIPPED) return { id, children }
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
