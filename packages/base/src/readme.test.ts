import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import * as base from '@skein/base'

const folder = fileURLToPath(new URL('..', import.meta.url))
const readme = readFileSync(`${folder}/README.md`, 'utf8')
const block = (kind: string) => readme.split(`\`\`\`${kind}\n`)[1]?.split('```')[0] ?? ''

test('the program prints what the manual says', () => {
  const flags = ['--conditions=@skein/source', '--input-type=module-typescript', '--no-warnings']
  const output = execFileSync(process.execPath, [...flags, '--eval', block('ts')], { cwd: folder })
  expect(output.toString()).toBe(block('text'))
})

test('every export is in the table', () => {
  const missing = Object.keys(base).filter((name) => !readme.includes(`\`${name}\``))
  expect(missing).toEqual([])
})
