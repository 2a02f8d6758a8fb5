import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseSync } from 'vite'
import { peersOf } from '../peers.ts'
import { lineCounter, type Node, walk } from '../source/measure.ts'

/** What `recheck` says about an expression, as far as it is used here. */
type Verdict =
  | { readonly status: 'safe'; readonly checker: string }
  | {
      readonly status: 'vulnerable'
      readonly checker: string
      readonly complexity: { readonly summary: string }
    }
  | {
      readonly status: 'unknown'
      readonly checker: string
      readonly error: { readonly kind: string }
    }

interface Recheck {
  check(source: string, flags: string, options: object): Promise<Verdict>
}

/** A regular expression in the source, with its place. */
interface Found {
  readonly place: string
  readonly source: string
  readonly flags: string
}

/**
 * Finds regular expressions whose matching time can grow faster than the length of the text. Text from a
 * model or a server chooses that length, so such an expression can block the process. An expression that
 * the checker cannot decide within its time is a problem too.
 */
export async function findSlowRegexes(
  root: string,
  pattern = 'packages/*/src/**/*.{ts,tsx}',
): Promise<string[]> {
  const places = new Map<string, Found>()
  for (const path of globSync(pattern, { cwd: root }).toSorted()) {
    if (/\.test(-d)?\.tsx?$/.test(path)) continue
    for (const found of regexesOf(path, readFileSync(join(root, path), 'utf8'))) {
      const key = `/${found.source}/${found.flags}`
      if (!places.has(key)) places.set(key, found)
    }
  }
  const { check } = await peersOf('recheck').load<Recheck>('recheck')
  const problems: string[] = []
  // One after the other: the checker uses a whole core for each expression.
  for (const { place, source, flags } of places.values()) {
    let found = await check(source, flags, { timeout: 10_000, randomSeed: 1 })
    // Not an automaton but a search, whose verdict depends on time: on a busy machine, the same search with more time.
    if (found.status !== 'safe' && found.checker !== 'automaton')
      found = await check(source, flags, { timeout: 90_000, randomSeed: 1 })
    if (found.status === 'safe') continue
    const how = found.status === 'vulnerable' ? found.complexity.summary : found.error.kind
    problems.push(`${place}: /${source}/${flags} is not linear (${how}).`)
  }
  return problems
}

/** The literals of a file, and `RegExp(…)` with a constant text, also as a `String.raw` template. */
export function regexesOf(path: string, text: string): Found[] {
  const { program } = parseSync(path, text)
  const lineOf = lineCounter(text)
  const found: Found[] = []
  walk(program.body, (node) => {
    const pattern = patternOf(node)
    if (pattern) found.push({ place: `${path}:${lineOf(node.start)}`, ...pattern })
  })
  return found
}

function patternOf(node: Node): Pick<Found, 'source' | 'flags'> | undefined {
  const regex = node['regex'] as { pattern: string; flags: string } | undefined
  if (node.type === 'Literal' && regex) return { source: regex.pattern, flags: regex.flags }
  const callee = node['callee'] as { readonly name?: string } | undefined
  if (callee?.name !== 'RegExp') return undefined
  const [source, flags] = (node['arguments'] as readonly Node[]).map(textOf)
  if (typeof source !== 'string') return undefined
  return { source, flags: typeof flags === 'string' ? flags : '' }
}

/** The value of a string, or the text of a `String.raw` template without holes. */
function textOf(node: Node): unknown {
  if (node.type !== 'TaggedTemplateExpression') return node['value']
  const { quasis } = node['quasi'] as {
    readonly quasis: readonly { readonly value: { readonly raw: string } }[]
  }
  return quasis.length === 1 ? quasis[0]?.value.raw : undefined
}
