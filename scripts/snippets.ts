/** `node scripts/snippets.ts`: fills the code fences that name a file (`ts file=examples/…`) from that file. */
import { readFileSync, writeFileSync } from 'node:fs'
import { relative } from 'node:path'
import { findPages, isPasted } from './snippets/pages.ts'
import { updateSnippets } from './snippets/snippets.ts'
import { root } from './workspace.ts'

for (const file of findPages()) {
  const page = readFileSync(file, 'utf8')
  const updated = updateSnippets(page, root, { hasImports: isPasted(file) })
  if (updated === page) continue
  writeFileSync(file, updated)
  console.log(`updated ${relative(root, file)}`)
}
