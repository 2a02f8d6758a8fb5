import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { rowsNamedBy } from './rows.ts'

/**
 * The test files whose titles name each row, by row id, read from their text. Nothing is run, so this says
 * where to look, not what is proved.
 */
export function filesNamingRows(root: string): Map<string, string[]> {
  const files = new Map<string, string[]>()
  const tests = globSync('{packages,conformance,examples,scripts,bench}/**/*.test{,-d}.{ts,tsx}', {
    cwd: root,
    exclude: (path) => /node_modules|dist|\.shared\./.test(path),
  })
  for (const file of tests.map((path) => path.replaceAll('\\', '/')).toSorted()) {
    const titles = readFileSync(join(root, file), 'utf8').matchAll(/(['"`])([A-Z]+-V?\d.*?)\1/g)
    for (const id of new Set([...titles].flatMap(([, , title]) => rowsNamedBy(title ?? ''))))
      files.set(id, [...(files.get(id) ?? []), file])
  }
  return files
}
