#!/usr/bin/env node
// Plain JavaScript that any Node can read, so that an old one gets a sentence and not a stack. In a clone it runs
// the TypeScript source; installed, it runs what was published.
import { existsSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)
if (major < 22 || (major === 22 && minor < 18)) {
  process.stderr.write(
    `Skein needs Node 24 or newer (its template "library" Node 22.18); this is Node ${process.versions.node}: ` +
      'see https://nodejs.org.\n',
  )
  process.exit(1)
}

const folder = join(dirname(fileURLToPath(import.meta.url)), '..')
const isClone = !folder.includes(`${sep}node_modules${sep}`) && existsSync(join(folder, 'src'))
const entry = isClone ? join(folder, 'src', 'index.ts') : join(folder, 'dist', 'index.js')
const { createSkein } = await import(pathToFileURL(entry).href)
await createSkein(process.argv.slice(2))
