/**
 * `npm run check`: format, lint, types and the rules no tool knows. All of them run, so one call
 * shows every problem.
 */
import { findApiChanges } from './check/api-report.ts'
import { findCitationProblems } from './check/citations.ts'
import { findFolderKnots, findValueCycles } from './check/cycles.ts'
import { findDependencyProblems } from './check/dependencies.ts'
import { findLayerProblems } from './check/layers.ts'
import { findLinkProblems, linkedPages } from './check/links.ts'
import { findNameProblems } from './check/names.ts'
import {
  findAllPhrases,
  findPhraseProblems,
  findUnusedAllowances,
  readAllowed,
  readBaseline,
} from './check/phrases.ts'
import { findPublicAny } from './check/public-any.ts'
import { findUnconnectedFiles } from './check/unconnected.ts'
import { measure } from './source/measure.ts'
import { publicNames } from './source/public-names.ts'
import { findPackages, root, run } from './workspace.ts'

interface Step {
  readonly name: string
  readonly problems: () => Promise<string>
}

const packages = findPackages()
const files = measure(root)

const steps: readonly Step[] = [
  {
    name: 'format (prettier)',
    problems: () =>
      tool('prettier', [
        '--check',
        '--log-level',
        'warn',
        '--cache',
        '--cache-location',
        '.cache/prettier',
        '.',
      ]),
  },
  { name: 'lint (oxlint)', problems: () => tool('oxlint', ['--deny-warnings']) },
  {
    name: 'types (tsc, tests included)',
    problems: () => tool('tsc', ['--noEmit', '-p', 'tsconfig.json']),
  },
  { name: 'dependencies', problems: async () => findDependencyProblems(root).join('\n') },
  { name: 'public types, API report', problems: publicTypes },
  { name: 'layers (allowed imports)', problems: async () => findLayerProblems(files).join('\n') },
  { name: 'cycles (imports of values)', problems: async () => findValueCycles(files).join('\n') },
  {
    name: 'names (exported twice)',
    problems: async () => findNameProblems(files, publicNames()).join('\n'),
  },
  {
    name: 'citations',
    problems: async () => findCitationProblems(root, files).join('\n'),
  },
  {
    name: 'phrases (node scripts/phrases.ts)',
    problems: async () =>
      findPhraseProblems(findAllPhrases(root, readAllowed(root)), readBaseline(root)).join('\n'),
  },
  {
    name: 'spelling (cspell)',
    problems: () =>
      tool('cspell', [
        'lint',
        '--no-progress',
        '--no-summary',
        '--cache',
        '--cache-strategy',
        'content',
        '--cache-location',
        '.cache/cspell',
        '--config',
        'scripts/check/spelling.json',
      ]),
  },
  {
    name: 'links (pages, anchors)',
    problems: async () => findLinkProblems(root, linkedPages(root)).join('\n'),
  },
]

/** Declarations are emitted first: only they show what users see, and only here is isolatedDeclarations on. */
async function publicTypes(): Promise<string> {
  const emitted = await tool('tsc', ['-b', ...packages.map(({ folder }) => folder)])
  const found = await findPublicAny(packages, { allowMissing: emitted !== '' })
  const changes = emitted === '' ? findApiChanges(packages) : []
  return [emitted, ...found, ...changes].filter((text) => text !== '').join('\n')
}

async function tool(command: string, args: readonly string[]): Promise<string> {
  const { code, output } = await run(command, args, { quiet: true })
  return code === 0 ? '' : output.trim() || `${command} ended with ${code}`
}

const results = await Promise.all(
  steps.map(async ({ name, problems }) => {
    const start = performance.now()
    const found = await problems()
    const seconds = ((performance.now() - start) / 1000).toFixed(1)
    console.log(`${found === '' ? 'ok  ' : 'FAIL'} ${name} (${seconds} s)`)
    return { name, found }
  }),
)

for (const { name, found } of results) {
  if (found !== '') console.error(`\n${name}:\n${found}`)
}
reportOnly()
process.exitCode = results.every(({ found }) => found === '') ? 0 : 1

/** What is reported and fails nothing yet. */
function reportOnly(): void {
  const unconnected = findUnconnectedFiles(root, files)
  const knots = findFolderKnots(files)
  console.log(
    `\nreported only: ${unconnected.length} files with unconnected groups of declarations (node scripts/stats.ts --unconnected)`,
  )
  for (const unused of findUnusedAllowances(root, readAllowed(root)))
    console.log(`reported only: ${unused}`)
  for (const knot of knots)
    console.log(
      `reported only: ${knot.length} folders import each other's types: ${knot.map((folder) => folder.replace('packages/', '').replace('/src', '')).join(', ')}`,
    )
}
