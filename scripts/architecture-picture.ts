/** Draws docs/architecture.svg from the text scripts/architecture-picture/packages.txt. A test compares them. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { packagesSvg, readPicture } from './architecture-picture/packages-svg.ts'
import { root } from './workspace.ts'

const text = readFileSync(join(root, 'scripts/architecture-picture/packages.txt'), 'utf8')
const file = 'docs/architecture.svg'
writeFileSync(join(root, file), packagesSvg(readPicture(text)))
console.log(`${file} is written.`)
