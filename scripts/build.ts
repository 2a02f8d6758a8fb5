/**
 * `npm run build`: bundled ESM and types of every package into its `dist`, from scratch, then a look at what
 * would be published: packed, unpacked and used as a new user would use it.
 *
 *   --pack <folder>   only builds the packages, without the site of the docs, and packs them into this folder
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

const published = packages.filter(({ manifest }) => manifest.private !== true)
const [mode, target] = process.argv.slice(2)
if (mode === '--pack' && target !== undefined) await packInto(target, published)
else {
  await reportDocs()
  process.exitCode = (await isPublishable(join(root, '.tmp', 'packed'))) ? 0 : 1
}

async function reportDocs(): Promise<void> {
  const docs = await buildDocs()
  console.log(
    typeof docs === 'string'
      ? `skipped: the site of the docs, whose generator npm could not install:\n${docs}`
      : `built ${docs.pages} pages of docs, ${Math.round(docs.bytes / 1000)} kB`,
  )
}

/** Looks at what would be published, and reports it. */
async function isPublishable(consumer: string): Promise<boolean> {
  const packed = await packInto(consumer, published)
  const problems = [
    ...(await findPackedProblems(consumer, packed)),
    ...(await findBundlingProblems(consumer, packed)),
  ]
  for (const problem of problems) console.error(problem)
  if (problems.length > 0) return false
  const entries = packed.reduce((sum, entry) => sum + entry.entries.length, 0)
  console.log(
    `packed ${packed.length} packages: ${entries} entries import and type-check as published`,
  )
  return true
}
