/**
 * Finds the names that a function takes from outside, by reading its source: names that it neither declares
 * nor gets as parameters, and that are no part of the language. The reading is rough on purpose: where it
 * cannot tell, a name counts as free, which at worst refuses a function that would have been fine.
 *
 * Returns undefined if the source is not shown, as for a bound or built-in function.
 */
export function findFreeNames(fn: (...args: never) => unknown): readonly string[] | undefined {
  const source = String(fn)
  if (/\{\s*\[native code\]\s*\}\s*$/.test(source)) return undefined
  const tokens = tokenize(source)
  const bound = findBound(tokens)
  const free = new Set<string>()
  for (const [at, token] of tokens.entries()) {
    if (!NAME.test(token) || KNOWN.has(token) || bound.has(token)) continue
    const before = tokens[at - 1]
    if (before === '.' || before === '?.') continue
    // `name:` after `{` or `,` is a member of an object or pattern. Elsewhere it is part of `a ? name : b`.
    if (tokens[at + 1] === ':' && (before === '{' || before === ',')) continue
    free.add(token)
  }
  return [...free]
}

const NAME = /^[\p{ID_Start}$_][\p{ID_Continue}$]*$/u

const KNOWN: ReadonlySet<string> = new Set(
  (
    'async await break case catch class const continue default delete do else extends false finally for ' +
    'function get if in instanceof let new null of return set static switch throw true try typeof var ' +
    'void while yield undefined NaN Infinity Object Array Number String Boolean Math JSON RegExp Set Map ' +
    'BigInt Symbol Date Intl URL Error TypeError RangeError parseInt parseFloat isNaN isFinite ' +
    'encodeURIComponent decodeURIComponent ' +
    // A helper that build tools insert to keep the names of functions.
    '__name'
  ).split(' '),
)

/** Splits source code into tokens. Strings, comments and regular expressions contain no names. */
function tokenize(source: string): string[] {
  const tokens: string[] = []
  let rest = source
  /** The open braces. `$` means `${` in a template literal: after its `}`, the literal's text continues. */
  const braces: string[] = []
  const take = (length: number): string => {
    const taken = rest.slice(0, length)
    rest = rest.slice(length)
    return taken
  }
  const takeTemplate = (): void => {
    const text = /^(?:[^\\`$]|\\[^]|\$(?!\{))*/.exec(rest)?.[0] ?? ''
    take(text.length)
    if (take(1) !== '$') return
    take(1)
    braces.push('$')
    tokens.push('(')
  }
  while (rest !== '') {
    const skipped =
      /^(?:\s+|\/\/[^\n]*|\/\*[^]*?\*\/|"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|\d[\w.]*)/.exec(
        rest,
      )
    if (skipped) {
      const text = take(skipped[0].length)
      if (!/^[\s/]/.test(text)) tokens.push('0')
      continue
    }
    const before = tokens.at(-1)
    // After a value a slash divides; anywhere else it begins a regular expression.
    const isValue = before !== undefined && (/^[)\]0]$/.test(before) || NAME.test(before))
    const pattern =
      isValue && before !== 'return' && before !== 'typeof'
        ? null
        : /^\/(?:[^\\/[\n]|\\.|\[(?:[^\]\\]|\\.)*\])+\/\w*/.exec(rest)
    const name = /^#?[\p{ID_Start}$_][\p{ID_Continue}$]*/u.exec(rest)
    const sign = /^(?:=>|\?\.(?!\d)|\.\.\.|[=!]==?|[<>]=|&&|\|\||\?\?)/.exec(rest)
    const token = take((pattern ?? name ?? sign)?.[0].length ?? 1)
    if (pattern) tokens.push('0')
    else if (token === '`') takeTemplate()
    else if (token === '}' && braces.pop() === '$') {
      tokens.push(')')
      takeTemplate()
    } else {
      if (token === '{') braces.push('{')
      tokens.push(token)
    }
  }
  return tokens
}

/** Returns the names that the function declares, as parameters or as variables, at any depth. */
function findBound(tokens: readonly string[]): ReadonlySet<string> {
  const bound = new Set<string>()
  const closing = new Map<number, number>()
  const openBraces: number[] = []
  for (const [at, token] of tokens.entries()) {
    if (/^[([{]$/.test(token)) openBraces.push(at)
    else if (/^[)\]}]$/.test(token)) closing.set(at, openBraces.pop() ?? 0)
  }
  /** Adds the names that a pattern declares. A default value after `=` uses names, but declares none. */
  const bindPattern = (from: number, to: number): void => {
    let isDefault = false
    let depth = 0
    let defaultDepth = 0
    for (let at = from; at < to; at++) {
      const token = tokens[at] as string
      if (/^[)\]}]$/.test(token)) depth -= 1
      if (isDefault && ((token === ',' && depth === defaultDepth) || depth < defaultDepth))
        isDefault = false
      if (/^[([{]$/.test(token)) depth += 1
      if (token === '=' && !isDefault) {
        isDefault = true
        defaultDepth = depth
      }
      if (!isDefault && NAME.test(token) && tokens[at + 1] !== ':') bound.add(token)
    }
  }
  for (const [at, token] of tokens.entries()) {
    const before = tokens[at - 1] ?? ''
    if (token === '=>' && NAME.test(before)) bound.add(before)
    else if (token === '=>' && before === ')') bindPattern((closing.get(at - 1) ?? 0) + 1, at - 1)
    else if (token === '{' && before === ')') bindParameters(at - 1)
    else if (token === 'const' || token === 'let' || token === 'var') bindVariables(at + 1)
    else if (token === 'function' && NAME.test(tokens[at + 1] ?? ''))
      bound.add(tokens[at + 1] as string)
  }
  /** Adds the parameters of a function or method, or the variable of a `catch`. */
  function bindParameters(end: number): void {
    const start = closing.get(end) ?? 0
    const word = tokens[start - 1] ?? ''
    const isBlock = word === 'if' || word === 'for' || word === 'while' || word === 'switch'
    if (isBlock) return
    bindPattern(start + 1, end)
    // The source of a method begins with the name of the method, e.g. `run(args) { … }`.
    if (start === 1 || (start === 2 && tokens[0] === 'async')) bound.add(word)
  }
  function bindVariables(from: number): void {
    let end = from
    for (let depth = 0; end < tokens.length; end++) {
      const token = tokens[end] as string
      if (/^[([{]$/.test(token)) depth += 1
      if (/^[)\]}]$/.test(token)) depth -= 1
      if (depth < 0) break
      if (depth === 0 && (token === '=' || token === 'of' || token === 'in' || token === ';')) break
    }
    bindPattern(from, end)
  }
  return bound
}
