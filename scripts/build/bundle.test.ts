import { expect, test } from 'vitest'
import { takeBuiltins } from './bundle.ts'

/** Runs the replaced statements and returns the names that they define. */
function defined(code: string, ...names: readonly string[]): Record<string, unknown> {
  const made = new Function(`${takeBuiltins(code)}\nreturn { ${names.join(', ')} }`) as () => object
  return { ...made() }
}

test('names, renamed names and whole modules of Node are what an import gives', () => {
  const code = [
    'import { join, sep as separator } from "node:path";',
    'import url from "node:url";',
    'import * as util from "node:util";',
    'import { DatabaseSync, constants } from "node:sqlite";',
  ].join('\n')
  expect(takeBuiltins(code)).not.toContain('import')
  const names = ['join', 'separator', 'url', 'util', 'DatabaseSync', 'constants']
  const { DatabaseSync, constants } = process.getBuiltinModule('node:sqlite')
  const { join, sep } = process.getBuiltinModule('node:path')
  expect(defined(code, ...names)).toEqual({
    join,
    separator: sep,
    url: process.getBuiltinModule('node:url'),
    util: process.getBuiltinModule('node:util'),
    DatabaseSync,
    constants,
  })
})

test('functions load their module when they are called', () => {
  const code = 'import { createHash as hashOf, randomBytes } from "node:crypto";'
  const asked: string[] = []
  const { getBuiltinModule } = process
  process.getBuiltinModule = ((name: string) => {
    asked.push(name)
    return getBuiltinModule(name)
  }) as typeof getBuiltinModule
  try {
    const { hashOf } = defined(code, 'hashOf', 'randomBytes') as {
      readonly hashOf: typeof import('node:crypto').createHash
    }
    const before = asked.length
    expect(hashOf('sha256').update('a').digest('hex')).toMatch(/^ca978112/)
    hashOf('sha256')
    expect(asked.slice(before)).toEqual(['node:crypto'])
  } finally {
    process.getBuiltinModule = getBuiltinModule
  }
})

test('lines keep their numbers, and other imports stay', () => {
  const code =
    'import { a } from "./a.js";\nimport { hash, Hash } from "node:crypto";\nexport { a };'
  const lines = takeBuiltins(code).split('\n')
  expect(lines).toHaveLength(3)
  expect([lines[0], lines[2]]).toEqual(['import { a } from "./a.js";', 'export { a };'])
})
