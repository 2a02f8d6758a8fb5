/**
 * `node scripts/portability.ts`: bundles every entry of the portable packages for a browser and for a worker,
 * and fails on built-in modules, foreign code, second copies, and a package whose main entry is over its budget.
 * The other sizes are printed.
 */
import { join } from 'node:path'
import { bundle, platforms } from './portability/bundle.ts'
import { findBundleProblems } from './portability/problems.ts'
import { findPackages, readJson, root, zeroDependencyPackages } from './workspace.ts'

interface Budgets {
  /** One per package, for its main entry. */
  readonly packages: Readonly<Record<string, number>>
  readonly programs: Readonly<Record<string, Program>>
}

interface Program {
  readonly code: string
  /** What we aim for, where it is not reached yet; said with every run. */
  readonly goalKb?: number
  /** Packages that are not counted: peers, which the application has anyway. */
  readonly external?: readonly string[]
}

interface Subject {
  readonly name: string
  readonly code: string
  readonly budgetKb?: number | undefined
  readonly goalKb?: number | undefined
  readonly external?: readonly string[] | undefined
}

const budgets = readJson(join(import.meta.dirname, 'portability', 'budgets.json')) as Budgets
const entries = findPackages()
  .filter(({ name }) => zeroDependencyPackages.includes(name))
  .flatMap(({ name, manifest }) =>
    Object.entries(manifest.exports ?? {})
      .filter(([path]) => path.startsWith('.') && !path.includes('*') && !path.endsWith('.json'))
      // An entry whose own file is named for Node makes no promise to run elsewhere.
      .filter(([, target]) => !/-node\.ts"/.test(JSON.stringify(target)))
      .map(([path]) => name + path.slice(1)),
  )

const subjects: Subject[] = entries.map((name) => ({
  name,
  code: `export * from '${name}'`,
  budgetKb: budgets.packages[name],
}))
for (const [name, { code, goalKb, external }] of Object.entries(budgets.programs)) {
  const needed = [...code.matchAll(/from '([^']+)'/g)].map((match) => match[1] ?? '')
  const absent = needed.filter((specifier) => !entries.includes(specifier))
  if (absent.length === 0) subjects.push({ name, code, goalKb, external })
  else console.log(`not measured: ${name} (${absent.join(', ')} does not exist yet)`)
}
// All entries at the same time: two packages that pull in different copies show only together.
subjects.push({
  name: 'all entries together',
  code: entries.map((name, index) => `export * as entry${index} from '${name}'`).join('\n'),
})

let failures = 0
console.log(
  `${'entry'.padEnd(34)}${'platform'.padEnd(10)}${'min kB'.padStart(8)}${'gzip kB'.padStart(9)}  budget`,
)
for (const { name, code, budgetKb, goalKb, external } of subjects) {
  for (const platform of platforms) {
    const problems: string[] = []
    let sizes = ['–', '–']
    try {
      const result = await bundle(code, platform, root, external)
      problems.push(...findBundleProblems(result, root))
      sizes = [kilobytes(result.minifiedBytes), kilobytes(result.gzipBytes)]
      if (budgetKb !== undefined && result.gzipBytes > budgetKb * 1000)
        problems.push(`${sizes[1]} kB is over the budget of ${budgetKb} kB`)
    } catch (error) {
      problems.push(`does not bundle: ${error instanceof Error ? error.message : String(error)}`)
    }
    const budget = String(budgetKb ?? '–')
    console.log(
      `${name.padEnd(34)}${platform.name.padEnd(10)}${sizes[0]?.padStart(8)}${sizes[1]?.padStart(9)}${budget.padStart(8)}` +
        (problems.length > 0 ? '  FAIL' : ''),
    )
    for (const problem of problems) console.log(`  ${problem}`)
    if (goalKb !== undefined) console.log(`  the goal is ${goalKb} kB`)
    failures += problems.length
  }
}
process.exitCode = failures === 0 ? 0 : 1

function kilobytes(bytes: number): string {
  return (bytes / 1000).toFixed(1)
}
