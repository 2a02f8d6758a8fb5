import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { findDependencyProblems, importedSpecifiers } from './dependencies.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'skein-rules-'))
  write('package.json', { name: 'workspace' })
  write('packages/base/package.json', { name: '@skein/base', version: '0.1.0' })
})
afterEach(() => rmSync(folder, { recursive: true }))

function write(file: string, content: object | string): void {
  mkdirSync(dirname(join(folder, file)), { recursive: true })
  writeFileSync(join(folder, file), typeof content === 'string' ? content : JSON.stringify(content))
}

describe('versions', () => {
  test.each(['^1.2.3', '~1.2.3', '1.x', '*', 'latest', '>=1.0.0', 'file:../x'])(
    '%s is not exact',
    (version) => {
      write('package.json', { name: 'workspace', devDependencies: { x: version } })
      expect(findDependencyProblems(folder)).toHaveLength(1)
    },
  )

  test.each(['1.2.3', '1.0.0-beta.17', 'npm:other@1.2.3'])('%s is exact', (version) => {
    write('package.json', { name: 'workspace', devDependencies: { x: version } })
    expect(findDependencyProblems(folder)).toEqual([])
  })

  test('a workspace package is named with the version it has', () => {
    write('packages/ai/package.json', {
      name: '@skein/ai',
      dependencies: { '@skein/base': '0.2.0' },
    })
    expect(findDependencyProblems(folder)[0]).toContain('the workspace has 0.1.0')
  })
})

test('only a test of a group may import what peers/ names', () => {
  write('peers/sdks/package.json', { name: 'peers-sdks', dependencies: { openai: '1.2.3' } })
  write('packages/base/test/a.sdks.test.ts', "import OpenAI from 'openai'")
  write('packages/base/test/kit.ts', "import OpenAI from 'openai'")
  expect(findDependencyProblems(folder)).toEqual([])
  write('packages/base/test/b.test.ts', "import OpenAI from 'openai'")
  write('packages/base/src/c.ts', "import OpenAI from 'openai'")
  expect(findDependencyProblems(folder).toSorted()).toEqual([
    'packages/base/src/c.ts imports openai, which @skein/base does not declare.',
    'packages/base/test/b.test.ts imports openai, which @skein/base does not declare.',
  ])
})

describe('packages without dependencies', () => {
  test.each(['dependencies', 'optionalDependencies', 'peerDependencies'])(
    '%s may not hold a third party',
    (field) => {
      write('packages/base/package.json', {
        name: '@skein/base',
        version: '0.1.0',
        [field]: { zod: '4.6.7' },
      })
      expect(findDependencyProblems(folder)[0]).toContain('zod')
    },
  )

  test('may have what is below them, development tools and optional peers', () => {
    write('packages/ai/package.json', {
      name: '@skein/ai',
      dependencies: { '@skein/base': '0.1.0' },
      devDependencies: { zod: '4.6.7' },
      peerDependencies: { '@opentelemetry/api': '^1.9.0' },
      peerDependenciesMeta: { '@opentelemetry/api': { optional: true } },
    })
    expect(findDependencyProblems(folder)).toEqual([])
  })

  test('may not turn an arrow round', () => {
    write('packages/ai/package.json', { name: '@skein/ai', version: '0.1.0' })
    write('packages/base/package.json', {
      name: '@skein/base',
      version: '0.1.0',
      dependencies: { '@skein/ai': '0.1.0' },
    })
    expect(findDependencyProblems(folder)[0]).toContain('not below')
  })
})

describe('imports', () => {
  test('must be declared', () => {
    write(
      'packages/base/src/x.ts',
      `import { z } from 'zod'\nexport type { A } from '@skein/ai/testing'\n`,
    )
    expect(findDependencyProblems(folder)).toHaveLength(2)
  })

  test('of tests may be development dependencies of the package or the workspace, nothing else', () => {
    write(
      'packages/base/src/x.test.ts',
      `import { z } from 'zod'\nimport 'vitest'\nimport { v } from 'valibot'\n`,
    )
    write('package.json', { name: 'workspace', devDependencies: { vitest: '5.1.0' } })
    write('packages/base/package.json', {
      name: '@skein/base',
      version: '0.1.0',
      devDependencies: { zod: '4.6.7' },
    })
    expect(findDependencyProblems(folder)).toEqual([
      'packages/base/src/x.test.ts imports valibot, which @skein/base does not declare.',
    ])
  })

  test('of built-ins stay in files named for it; tests are free', () => {
    write('packages/base/src/hash-node.ts', `import { createHash } from 'node:crypto'\n`)
    write('packages/base/src/hash.test.ts', `import { createHash } from 'node:crypto'\n`)
    expect(findDependencyProblems(folder)).toEqual([])
    write('packages/base/src/hash.ts', `import { createHash } from 'node:crypto'\n`)
    expect(findDependencyProblems(folder)[0]).toContain('hash.ts imports node:crypto')
  })

  test('are found in every form, and not in comments', () => {
    const source = `import 'a'
import b from 'b'
import type { C } from 'c'
import {
  d,
} from 'd'
export * from 'e'
export * as f from 'f'
export { g } from 'g'
const h = await import('h')
/**
 * import { no } from 'no'
 */
// import no from 'no'
export const text = 'from elsewhere'
`
    expect(importedSpecifiers(source).toSorted()).toEqual(['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'])
  })
})
