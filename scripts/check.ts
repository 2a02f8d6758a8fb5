/**
 * `npm run check`: format, lint, types and the rules no tool knows. All of them run, so one call
 * shows every problem.
 */
import { findApiChanges } from './check/api-report.ts'
import { findDependencyProblems } from './check/dependencies.ts'
import { findHouseProblems } from './check/house.ts'
import { findLinkProblems, linkedPages } from './check/links.ts'
import { findPublicAny } from './check/public-any.ts'
import { findSlowRegexes } from './check/regexes.ts'
import { findPackages, root, run } from './workspace.ts'

interface Step {
  readonly name: string
  readonly problems: () => Promise<string>
}

const packages = findPackages()

const steps: readonly Step[] = [
  {
    name: 'format (prettier)',
    problems: () => tool('prettier', ['--check', '--log-level', 'warn', '.']),
  },
  { name: 'lint (oxlint)', problems: () => tool('oxlint', ['--deny-warnings']) },
  {
    name: 'types (tsc, tests included)',
    problems: () => tool('tsc', ['--noEmit', '-p', 'tsconfig.json']),
  },
  { name: 'dependencies', problems: async () => findDependencyProblems(root).join('\n') },
  { name: 'public types, API report', problems: publicTypes },
  { name: 'house (rooms, doors, names)', problems: async () => findHouseProblems(root).join('\n') },
  {
    name: 'links (pages, anchors)',
    problems: async () => findLinkProblems(root, linkedPages(root)).join('\n'),
  },
  {
    name: 'regular expressions (linear)',
    problems: async () => (await findSlowRegexes(root)).join('\n'),
  },
  {
    name: 'walk (one request)',
    problems: () => tool('node', ['--conditions=@skein/source', 'scripts/walk.ts', '--check']),
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
process.exitCode = results.every(({ found }) => found === '') ? 0 : 1
