/**
 * `npm run build`: bundled ESM and types of every package into its `dist`, from scratch, then a look at what
 * would be published: packed, unpacked and used as a stranger would use it.
 *
 *   --pack <folder>   only builds, and packs into this folder; what is packed is not looked at
 */
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { buildPackages, buildPage } from './build/bundle.ts'
import { findBundlingProblems } from './build/bundled.ts'
import { findPackedProblems, packInto } from './build/packed.ts'
import { buildDocs } from './docs/build.ts'
import { findPackages, root } from './workspace.ts'

const packages = findPackages()

for (const { folder } of packages) {
  rmSync(join(folder, 'dist'), { recursive: true, force: true })
  rmSync(join(folder, 'tsconfig.tsbuildinfo'), { force: true })
}
await buildPackages(packages)
await buildPage()
console.log(`built ${packages.map(({ name }) => name).join(', ')}`)
const docs = await buildDocs()
console.log(
  typeof docs === 'string'
    ? `skipped: the site of the docs, whose generator npm could not install:\n${docs}`
    : `built ${docs.pages} pages of docs, ${Math.round(docs.bytes / 1000)} kB`,
)

const packOnly = process.argv[2] === '--pack' ? process.argv[3] : undefined
const consumer = packOnly ?? join(root, '.tmp', 'packed')
const packed = await packInto(
  consumer,
  packages.filter(({ manifest }) => manifest.private !== true),
)
const problems =
  packOnly === undefined
    ? [
        ...(await findPackedProblems(consumer, packed)),
        ...(await findBundlingProblems(consumer, packed)),
      ]
    : []
for (const problem of problems) console.error(problem)
if (packOnly === undefined && problems.length === 0) {
  const entries = packed.reduce((sum, entry) => sum + entry.entries.length, 0)
  console.log(
    `packed ${packed.length} packages: ${entries} entries import and type-check as published`,
  )
}
process.exitCode = problems.length === 0 ? 0 : 1
