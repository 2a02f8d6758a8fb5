/** Runs the demo, and writes what it prints as the picture of the README: docs/demo.svg. A test compares them. */
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { terminalSvg } from './demo-picture/terminal-svg.ts'
import { root } from './workspace.ts'

const { NO_COLOR: _, ...env } = process.env
const printed = execFileSync(process.execPath, ['packages/cli/bin/skein.js', 'demo'], {
  cwd: root,
  encoding: 'utf8',
  env: { ...env, FORCE_COLOR: '1' },
})
const file = join('docs', 'demo.svg')
writeFileSync(join(root, file), terminalSvg('npm run demo', printed))
console.log(`${file} shows ${printed.trimEnd().split('\n').length} lines`)
