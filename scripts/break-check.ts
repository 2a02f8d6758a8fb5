/**
 * `npm run break-check`: breaks one thing at a time in a copy of the repository and shows that the
 * commands of CI notice, each for the right reason. An argument picks breakages by name.
 */
import { breakages } from './break-check/breakages.ts'
import { runBreakage } from './break-check/run-breakage.ts'
import { copyWorkspace } from './workspace-copy.ts'

const wanted = process.argv.slice(2)
const chosen = breakages.filter(
  ({ name }) => wanted.length === 0 || wanted.some((part) => name.includes(part)),
)
const copy = copyWorkspace()
let missed = 0
try {
  for (const breakage of chosen) {
    const { name, noticed, output } = await runBreakage(breakage, copy)
    console.log(`${noticed ? 'noticed' : 'MISSED '} ${name}`)
    if (!noticed) {
      missed++
      console.log(output)
    }
  }
} finally {
  copy.remove()
}
console.log(`${chosen.length - missed} of ${chosen.length} breakages noticed`)
process.exitCode = missed === 0 && chosen.length > 0 ? 0 : 1
