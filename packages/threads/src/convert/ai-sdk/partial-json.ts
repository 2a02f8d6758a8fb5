/** The value of a JSON text that may stop anywhere, as far as it is certain; undefined when nothing is. */
export function parsePartialJson(text: string): unknown {
  return tryParse(text) ?? tryParse(completeJson(text))
}

function tryParse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Expected while the text is still arriving.
    return undefined
  }
}

const SPACE = /\s/
const WORD = /[a-z]/
const NUMBER = /[-+.\deE]/
const LITERALS = ['true', 'false', 'null']

/**
 * Cuts what is undecided at the end (a key without value, half an escape) and closes what is open, in one pass.
 * `keep` is always a point up to which the text plus the closing brackets is JSON.
 */
function completeJson(text: string): string {
  const closers: string[] = []
  let keep = 0
  let depth = 0
  let tail = ''
  let isKey = false
  const mark = (end: number, extra = '') => {
    keep = end
    depth = closers.length
    tail = extra
  }
  for (let at = 0; at < text.length;) {
    const char = text[at]!
    if (char === '{' || char === '[') {
      closers.push(char === '{' ? '}' : ']')
      isKey = char === '{'
      mark(++at)
    } else if (char === '}' || char === ']') {
      closers.pop()
      isKey = false
      mark(++at)
      // What follows a whole value is no part of it.
      if (closers.length === 0) break
    } else if (char === '"') {
      const end = endOfString(text, at)
      if (isKey) {
        at = end.at
      } else {
        mark(end.isClosed ? end.at : end.safe, end.isClosed ? '' : '"')
        at = end.at
      }
    } else if (char === ',') {
      isKey = closers.at(-1) === '}'
      at++
    } else if (char === ':') {
      isKey = false
      at++
    } else if (SPACE.test(char)) {
      at++
    } else {
      at = scalar(text, at, mark)
    }
  }
  return text.slice(0, keep) + tail + closers.slice(0, depth).reverse().join('')
}

/** Reads a number or a word; a word that has only begun is finished, a number is cut to its last digit. */
function scalar(text: string, start: number, mark: (end: number, extra?: string) => void): number {
  let end = start + 1
  const shape = NUMBER.test(text[start]!) ? NUMBER : WORD
  while (end < text.length && shape.test(text[end]!)) end++
  const word = text.slice(start, end)
  if (shape === WORD) {
    const literal = LITERALS.find((candidate) => candidate.startsWith(word))
    if (literal) mark(end, literal.slice(word.length))
  } else {
    const digits = /^-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/.exec(word)
    if (digits) mark(start + digits[0].length)
  }
  return end
}

/** Where a string ends, or the last point at which it may be cut. */
function endOfString(text: string, start: number): { at: number; safe: number; isClosed: boolean } {
  let at = start + 1
  while (at < text.length) {
    const char = text[at]!
    if (char === '"') return { at: at + 1, safe: at + 1, isClosed: true }
    const width = char !== '\\' ? 1 : text[at + 1] === 'u' ? 6 : 2
    if (at + width > text.length) return { at: text.length, safe: at, isClosed: false }
    at += width
  }
  return { at, safe: at, isClosed: false }
}
