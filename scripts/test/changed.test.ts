import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { planOfChanges } from './changed.ts'

let root: string
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'skein-changed-'))
  const files = [
    'packages/cli/src/commands/run.test.ts',
    'packages/cli/test/run.test.ts',
    'packages/cli/test/guides.test.ts',
    'packages/cli/test/mcp.sdks.test.ts',
    'packages/server/test/http/auth.test.ts',
    'packages/server/test/nodes/nodes.test.ts',
    'packages/postgres/test/kill.postgres.test.ts',
    'scripts/docs/pages.test.ts',
    'scripts/check/links.test.ts',
    'examples/examples.test.ts',
    'examples/readme.test.ts',
  ]
  for (const file of files) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    writeFileSync(join(root, file), '')
  }
})
afterAll(() => rmSync(root, { recursive: true }))

const plan = (...files: string[]) => planOfChanges(files, root)

test('source leads to the tests that import it, and to the fast integration tests of its package', () => {
  expect(plan('packages/cli/src/commands/run.ts')).toEqual({
    changed: ['packages/cli/src/commands/run.ts'],
    tests: [
      'packages/cli/src/commands/run.test.ts',
      'packages/cli/test/guides.test.ts',
      'packages/cli/test/run.test.ts',
    ],
    groups: [],
  })
})

test('a folder of the same name under test/ stands for the folder of the source', () => {
  expect(plan('packages/server/src/http/guard.ts').tests).toEqual([
    'packages/server/test/http/auth.test.ts',
  ])
  expect(plan('packages/server/src/index.ts').tests).toEqual([
    'packages/server/test/http/auth.test.ts',
    'packages/server/test/nodes/nodes.test.ts',
  ])
})

test('a page leads to the tests that read pages', () => {
  expect(plan('docs/chat.md')).toEqual({
    changed: [],
    tests: ['examples/readme.test.ts', 'scripts/docs/pages.test.ts'],
    groups: [],
  })
})

test('a guide leads to the test that runs what guides say; an example to the tests of examples', () => {
  expect(plan('docs/guides/tools.md').tests).toEqual([
    'examples/readme.test.ts',
    'packages/cli/test/guides.test.ts',
    'scripts/docs/pages.test.ts',
  ])
  expect(plan('examples/10-hello.ts').tests).toEqual([
    'examples/examples.test.ts',
    'examples/readme.test.ts',
  ])
})

test('what needs a server, a browser or other packages is named as a group', () => {
  expect(
    plan('packages/postgres/src/tables.ts', 'packages/cli/test/mcp.sdks.test.ts').groups,
  ).toEqual(['postgres', 'sdks'])
  expect(plan('peers/sdks/package.json').groups).toEqual(['sdks'])
})
