import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { readJson } from '../workspace.ts'

/** A phrase that our text does not use, and what to write in its place. */
interface Phrase {
  readonly name: string
  /** A regular expression, in which a space is any white space, also the start of the next line of a comment. */
  readonly words: string
  readonly instead: string
}

/** One place where a phrase occurs. */
export interface Finding {
  /** Relative to the repository. */
  readonly path: string
  readonly line: number
  readonly phrase: string
  readonly instead: string
  /** The line in which the phrase begins. */
  readonly text: string
}

/** Places that keep a phrase: an old sentence that is quoted, or a word of an example's own subject. */
export interface Allowed {
  /** A file, or a folder with a slash at its end. */
  readonly path: string
  readonly phrases: readonly string[]
  readonly because: string
}

/** How often each phrase may still occur in a folder. */
export type Baseline = Readonly<Record<string, Readonly<Record<string, number>>>>

const phrases: readonly Phrase[] = [
  { name: 'goes on', words: '(?:go|goes|going|gone|went) on', instead: 'continues, resumes' },
  { name: 'at once', words: 'at once', instead: 'immediately; at the same time' },
  { name: 'beside', words: 'beside', instead: 'next to, in addition to' },
  {
    name: 'is told',
    words: '(?:is|are|was|were|be|been|being) (?:(?:also|never|not|only|then) )?told',
    instead: 'receives, learns, is notified',
  },
  { name: 'nobody', words: 'nobody', instead: 'no one; better, the actor: no reader, no process' },
  { name: 'somebody', words: 'somebody', instead: 'someone; better, the actor: a user, a reader' },
  { name: 'whoever', words: 'whoever', instead: 'anyone who; better, "if you"' },
  {
    name: 'stands',
    words: '(?:stand|stands|standing|stood)(?! (?:alone|for|grants?|in|out)(?![a-z]))',
    instead: 'is, remains, has been waiting',
  },
  { name: 'hears', words: 'hears|heard (?:about|from|of|that)', instead: 'receives, is notified' },
  { name: 'mends', words: 'mend(?:s|ed|ing)?', instead: 'fixes, repairs' },
  { name: 'door', words: 'doors?', instead: 'entry point, API, request' },
  { name: 'room', words: 'rooms', instead: 'folders, layers' },
  { name: 'shelf', words: 'shelf|shelves', instead: 'index, list' },
  { name: 'bell', words: 'bells?', instead: 'listener, notification' },
  { name: 'stranger', words: 'strangers?', instead: 'new user, third party' },
  { name: 'law', words: 'laws?', instead: 'property, invariant' },
]

const gap = String.raw`(?:\s+(?:(?:\*|//|>)\s+)?|\s*['"\x60]\s*\+\s*['"\x60]\s*)`

const patterns = phrases.map((phrase) => ({
  ...phrase,
  // A whole string such as 'nobody' is a value of a test, not text.
  pattern: new RegExp(
    String.raw`(?<![\w-]|['"\x60](?=\w+['"\x60]))(?:${phrase.words.replaceAll(' ', gap)})(?![\w-])`,
    'gi',
  ),
}))

const fileName = 'file name'
const metaphor =
  /(?<=^|[-_./])(?:house|rooms?|doors?|walk|laws?|breaks?|desks?|shelf|mail|bells?|trials?|strangers?)(?=[-_./]|$)/

/** The files whose text is checked: pages, sources, tests, templates. What names the phrases itself is left out. */
export function findTextFiles(root: string): string[] {
  const endings = '*.{css,html,js,jsx,md,mjs,njk,ts,tsx,yml}'
  return globSync(
    [
      '*.md',
      `.github/**/${endings}`,
      `{bench,conformance,docs,examples,packages,peers,scripts}/**/${endings}`,
    ],
    {
      cwd: root,
      exclude: (path) => /(?:^|[/\\])(?:node_modules|dist|\.cache|\.next|\.tmp)$/.test(path),
    },
  )
    .map((path) => path.replaceAll('\\', '/'))
    .filter((path) => !path.startsWith('scripts/check/phrases'))
    .toSorted()
}

/** Every phrase of the list in a text, and a metaphor in the name of its file. */
export function findPhrases(path: string, text: string): Finding[] {
  const name = metaphor.exec(path)?.[0]
  const inName: Finding[] =
    name === undefined
      ? []
      : [{ path, line: 1, phrase: fileName, instead: 'an ordinary noun', text: name }]
  const inText = patterns.flatMap(({ name: phrase, pattern, instead }) =>
    [...text.matchAll(pattern)].map(({ index }) => {
      const before = text.slice(0, index)
      const start = before.lastIndexOf('\n') + 1
      const end = text.indexOf('\n', index)
      return {
        path,
        line: before.split('\n').length,
        phrase,
        instead,
        text: text.slice(start, end === -1 ? undefined : end).trim(),
      }
    }),
  )
  return [...inName, ...inText]
}

/** Allowances for a file and a phrase that no longer occurs there. */
export function findUnusedAllowances(root: string, allowed: readonly Allowed[]): string[] {
  const findings = findAllPhrases(root, [])
  return allowed.flatMap(({ path, phrases: names, because }) =>
    names
      .filter(
        (name) => !findings.some((finding) => allows({ path, phrases: [name], because }, finding)),
      )
      .map((name) => `scripts/check/phrases-allowed.json: "${name}" no longer occurs in ${path}.`),
  )
}

/** Every place of the repository that is not allowed. */
export function findAllPhrases(root: string, allowed: readonly Allowed[]): Finding[] {
  return findTextFiles(root)
    .flatMap((path) => findPhrases(path, readFileSync(join(root, path), 'utf8')))
    .filter((finding) => !allowed.some((entry) => allows(entry, finding)))
}

function allows({ path, phrases: names }: Allowed, finding: Finding): boolean {
  const isThere = path.endsWith('/') ? finding.path.startsWith(path) : finding.path === path
  return isThere && names.includes(finding.phrase)
}

/** The folder for which the baseline counts: a package or a folder of the repository. */
export function folderOf(path: string): string {
  const [first = '', second] = path.split('/')
  if (second === undefined) return '.'
  return first === 'packages' ? `${first}/${second}` : first
}

export function countPhrases(findings: readonly Finding[]): Baseline {
  const counts: Record<string, Record<string, number>> = {}
  for (const { path, phrase } of findings) {
    const folder = (counts[folderOf(path)] ??= {})
    folder[phrase] = (folder[phrase] ?? 0) + 1
  }
  return counts
}

/** The counts for the baseline file: those of now, but never more than it allowed before. */
export function lowerBaseline(baseline: Baseline, findings: readonly Finding[]): Baseline {
  const now = countPhrases(findings)
  return Object.fromEntries(
    Object.entries(baseline).flatMap(([folder, counts]) => {
      const lower = Object.entries(counts).flatMap(([phrase, count]) => {
        const left = Math.min(count, now[folder]?.[phrase] ?? 0)
        return left === 0 ? [] : [[phrase, left] as const]
      })
      return lower.length === 0 ? [] : [[folder, Object.fromEntries(lower)] as const]
    }),
  )
}

/** A line for each place of a phrase that occurs more often in its folder than the baseline allows. */
export function findPhraseProblems(findings: readonly Finding[], baseline: Baseline): string[] {
  const counts = countPhrases(findings)
  return findings.flatMap((finding) => {
    const folder = folderOf(finding.path)
    const count = counts[folder]?.[finding.phrase] ?? 0
    const limit = baseline[folder]?.[finding.phrase] ?? 0
    if (count <= limit) return []
    const because = limit === 0 ? '' : ` (${count} in ${folder}, at most ${limit} allowed)`
    return [`${describeFinding(finding)}${because}`]
  })
}

export function describeFinding({ path, line, phrase, instead, text }: Finding): string {
  return `${path}:${line} "${phrase}", write: ${instead}. ${text}`
}

export function readAllowed(root: string): readonly Allowed[] {
  return readJson(join(root, 'scripts/check/phrases-allowed.json')) as readonly Allowed[]
}

export function baselineFile(root: string): string {
  return join(root, 'scripts/check/phrases-baseline.json')
}

export function readBaseline(root: string): Baseline {
  return readJson(baselineFile(root)) as Baseline
}
