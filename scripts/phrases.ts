/**
 * `node scripts/phrases.ts [folder…]`: every place with a phrase that our text does not use, those of the baseline
 * included. `--write` lowers the baseline to what is left; it never rises.
 */
import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import {
  baselineFile,
  countPhrases,
  describeFinding,
  findAllPhrases,
  lowerBaseline,
  readAllowed,
  readBaseline,
} from './check/phrases.ts'
import { root } from './workspace.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { write: { type: 'boolean', default: false } },
})
const folders = positionals.map((folder) => folder.replace(/^\.\/|\/$/g, ''))
const findings = findAllPhrases(root, readAllowed(root)).filter(
  ({ path }) =>
    folders.length === 0 ||
    folders.some((folder) => path === folder || path.startsWith(`${folder}/`)),
)

if (values.write) {
  const all = findAllPhrases(root, readAllowed(root))
  const lower = lowerBaseline(readBaseline(root), all)
  writeFileSync(baselineFile(root), `${JSON.stringify(lower, undefined, 2)}\n`)
}
for (const finding of findings) console.log(describeFinding(finding))
for (const [folder, counts] of Object.entries(countPhrases(findings))) {
  const list = Object.entries(counts).map(([phrase, count]) => `${phrase} ${count}`)
  console.log(`${folder}: ${list.join(', ')}`)
}
