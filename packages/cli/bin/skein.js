#!/usr/bin/env node
// Plain JavaScript that any Node can read; what it loads needs Node 24. In a clone it runs the TypeScript
// source, so that nothing has to be built; installed, it runs what was published.

const wanted = 24
if (Number(process.versions.node.split('.')[0]) < wanted) {
  process.stderr.write(
    `skein needs Node ${wanted} or newer; this is Node ${process.versions.node}.\n` +
      'In a clone `npx skein` brings Node along (after `npm ci`); elsewhere see https://nodejs.org.\n',
  )
  process.exit(1)
}

// An import of Node's modules would load everything that they can give: 4 ms for `node:fs` alone.
const { existsSync } = process.getBuiltinModule('node:fs')
const module = process.getBuiltinModule('node:module')
const { dirname, join, sep } = process.getBuiltinModule('node:path')
const { fileURLToPath, pathToFileURL } = process.getBuiltinModule('node:url')

const folder = join(dirname(fileURLToPath(import.meta.url)), '..')
const isClone = !folder.includes(`${sep}node_modules${sep}`) && existsSync(join(folder, 'src'))
module.enableCompileCache()
if (isClone)
  module.registerHooks({
    resolve: (specifier, context, next) =>
      next(specifier, { ...context, conditions: ['@skein/source', ...context.conditions] }),
  })
const entry = isClone ? join(folder, 'src', 'index.ts') : join(folder, 'dist', 'index.js')
const { main } = await import(pathToFileURL(entry).href)
await main(process.argv.slice(2))
