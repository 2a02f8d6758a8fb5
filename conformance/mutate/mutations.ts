import { transformSync } from 'esbuild'
import { maskSource } from './mask.ts'

/** One small change that a good test should notice. */
export interface Mutation {
  readonly line: number
  readonly before: string
  readonly after: string
  /** The whole file with the change made. */
  readonly source: string
}

interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

const swaps: ReadonlyArray<readonly [pattern: RegExp, replace: (found: string) => string]> = [
  [/===|!==/g, (found) => (found === '===' ? '!==' : '===')],
  [
    / (?:<=|>=|<|>) /g,
    (found) => ({ ' < ': ' >= ', ' > ': ' <= ', ' <= ': ' > ', ' >= ': ' < ' })[found] ?? found,
  ],
  [/ (?:&&|\|\|) /g, (found) => (found === ' && ' ? ' || ' : ' && ')],
  [/ \?\? /g, () => ' && '],
  [/ [+-] /g, (found) => (found === ' + ' ? ' - ' : ' + ')],
  [/\b(?:true|false)\b/g, (found) => (found === 'true' ? 'false' : 'true')],
  [/(?<![\w.$#])\d+(?![\w.])/g, (found) => String(Number(found) + 1)],
  [/(?<=[\s(])!(?=[\w(])/g, () => ''],
  [/\bthrow (?=\w)/g, () => 'void '],
  [/\bawait /g, () => ''],
  [/(?<=\breturn ).*\S.*$/gm, () => 'undefined'],
  // A call whose value nobody takes: leave it out.
  [
    /(?<=^\s*)(?!return|throw|await|if|for|while|switch|super|import|export)[\w.#?!]+\(.*\)$/gm,
    () => 'void 0',
  ],
]

/**
 * All mutations of a file that start on one of the lines, in order. A change that does not parse is
 * left out: it would turn any test red and show nothing.
 */
export function mutationsOf(source: string, lines: ReadonlySet<number>): Mutation[] {
  const { code, strings } = maskSource(source)
  const edits: Edit[] = [
    ...swaps.flatMap(([pattern, replace]) =>
      [...code.matchAll(pattern)].map((match) => edit(match.index, match[0], replace(match[0]))),
    ),
    ...negatedConditions(source, code),
    ...strings
      .filter(({ start, end }) => end - start > 2)
      .map(({ start, end }) => ({ start, end, text: "''" })),
  ]
  const lineStarts = [...source.matchAll(/^/gm)].map((match) => match.index)
  return edits
    .map((change) => ({
      ...change,
      line: lineStarts.findLastIndex((start) => start <= change.start) + 1,
    }))
    .filter(({ line }) => lines.has(line))
    .filter(
      ({ line }) => !/^\s*(?:import|export \*|\} from)\b/.test(lineText(source, lineStarts, line)),
    )
    .toSorted((a, b) => a.start - b.start)
    .map(({ start, end, text, line }) => {
      const mutated = source.slice(0, start) + text + source.slice(end)
      const before = lineText(source, lineStarts, line).trim()
      return { line, before, after: lineText(mutated, lineStarts, line).trim(), source: mutated }
    })
    .filter(({ before, after, source: mutated }) => before !== after && parses(mutated))
}

function edit(start: number, found: string, text: string): Edit {
  return { start, end: start + found.length, text }
}

/** `if (x)` becomes `if (!(x))`. */
function negatedConditions(source: string, code: string): Edit[] {
  return [...code.matchAll(/\b(?:if|while) \(/g)].flatMap((match) => {
    const start = match.index + match[0].length - 1
    const end = closingParenthesis(code, start) + 1
    return end === 0 ? [] : [{ start, end, text: `(!${source.slice(start, end)})` }]
  })
}

function closingParenthesis(code: string, open: number): number {
  let depth = 0
  for (let at = open; at < code.length; at++) {
    if (code[at] === '(') depth++
    if (code[at] === ')' && --depth === 0) return at
  }
  return -1
}

function lineText(source: string, lineStarts: readonly number[], line: number): string {
  const start = lineStarts[line - 1] ?? 0
  const end = source.indexOf('\n', start)
  return source.slice(start, end < 0 ? undefined : end)
}

function parses(source: string): boolean {
  try {
    transformSync(source, { loader: 'ts', logLevel: 'silent' })
    return true
  } catch {
    return false
  }
}
