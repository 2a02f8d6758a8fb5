import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { tempFolder } from './kit.ts'

/** Files with these texts, in a project of their own. */
export function project(files: Readonly<Record<string, string>>): string {
  const cwd = tempFolder()
  for (const [name, text] of Object.entries({ 'package.json': '{ "type": "module" }', ...files })) {
    mkdirSync(dirname(join(cwd, name)), { recursive: true })
    writeFileSync(join(cwd, name), text)
  }
  return cwd
}
