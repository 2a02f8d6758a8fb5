/**
 * `node scripts/api.ts`: compares what users can import with the reports in `api/`, as `npm run check` does.
 *
 *   --write   writes the reports
 */
import { parseArgs } from 'node:util'
import { findApiChanges, writeApiReports } from './check/api-report.ts'
import { findPackages, run } from './workspace.ts'

const { values } = parseArgs({ options: { write: { type: 'boolean', default: false } } })
const packages = findPackages()
const { code, output } = await run('tsc', ['-b', ...packages.map(({ folder }) => folder)], {
  quiet: true,
})
if (code !== 0) {
  console.error(output)
  process.exit(1)
}
if (values.write) writeApiReports(packages)
const changes = findApiChanges(packages)
for (const change of changes) console.error(change)
process.exitCode = changes.length === 0 ? 0 : 1
