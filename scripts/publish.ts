/**
 * `node scripts/publish.ts`: builds and checks the packages, then publishes their tarballs, each after those that it
 * depends on. docs/versioning.md says what a release needs.
 *
 *   --version X      the version that is to be published; every package must have it
 *   --tag NAME       default: latest
 *   --registry URL   default: https://registry.npmjs.org
 *   --provenance     signs where the tarballs were built (in CI)
 *   --dry-run        does everything but sending
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { findReleaseProblems, publish, publishOrder } from './release/publish.ts'
import { findPackages, root, run } from './workspace.ts'

const { values } = parseArgs({
  options: {
    version: { type: 'string' },
    tag: { type: 'string', default: 'latest' },
    registry: { type: 'string', default: 'https://registry.npmjs.org' },
    provenance: { type: 'boolean', default: false },
    'dry-run': { type: 'boolean', default: false },
  },
})
const packages = publishOrder(findPackages())
const { version = '' } = values
const changelog = readFileSync(join(root, 'CHANGELOG.md'), 'utf8')
const problems = findReleaseProblems(packages, { version, changelog })
if (values.provenance)
  for (const { name, manifest } of packages)
    if (!('repository' in manifest))
      problems.push(`${name}: provenance needs "repository" in package.json.`)
const { output: changed } = await run('git', ['status', '--porcelain'], { quiet: true })
if (changed !== '') problems.push(`There are changes that are not committed:\n${changed}`)
if (problems.length > 0) {
  for (const problem of problems) console.error(problem)
  process.exit(1)
}

const { code } = await run('npm', ['run', 'build'])
if (code !== 0) process.exit(1)
try {
  await publish(
    packages.map(({ name }) => ({ name, version, tarball: tarballOf(name) })),
    {
      registry: values.registry,
      tag: values.tag,
      provenance: values.provenance,
      isDryRun: values['dry-run'],
    },
  )
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}

/** The tarball that the build packed, unpacked and checked. */
function tarballOf(name: string): string {
  const folder = join(root, '.tmp', 'packed', 'tarballs', name.replace('/', '-'))
  return join(folder, readdirSync(folder).find((file) => file.endsWith('.tgz')) ?? '')
}
