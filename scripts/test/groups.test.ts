import { globSync } from 'node:fs'
import { expect, test } from 'vitest'
import { peerNames } from '../peers.ts'
import { groupOfProgram } from '../examples/groups.ts'
import { readJson, root, type Manifest } from '../workspace.ts'
import { groupOf, groups, linkedPeers } from './groups.ts'

test.each([
  ['packages/studio/test/flows.browser.test.ts', 'browser'],
  ['packages/ai/test/vendor-types.sdks.test-d.ts', 'sdks'],
  ['packages/ai/src/llm.test.ts', undefined],
  ['packages/ai/src/browser.test.ts', undefined],
  ['scripts/x.unknown.test.ts', undefined],
])('%s belongs to %s', (file, name) => {
  expect(groupOf(file)?.name).toBe(name)
})

test('every file with a group in its name has one that exists, and every group has files', () => {
  const files = globSync(
    '{packages/*/{src,test},conformance,examples,scripts,bench}/**/*.*.test.{ts,tsx}',
    {
      cwd: root,
    },
  )
  const suffixes = new Set(files.map((file) => /\.([a-z]+)\.test\.tsx?$/.exec(file)?.[1]))
  expect([...suffixes].toSorted()).toEqual(groups.map(({ name }) => name).toSorted())
})

test('the group of a program has the packages of the files next to it that it imports, too', () => {
  const folder = `${root}/packages/governance/test`
  expect(groupOfProgram(`${folder}/use-chat-app.ts`)).toBe('frameworks')
  expect(groupOfProgram(`${root}/packages/studio/test/studio-kit.ts`)).toBe('browser')
})

test('a group installs folders of peers/ that exist, and what its tests import has one version', () => {
  for (const { peers } of groups) {
    const versions = new Map<string, string>()
    for (const name of peers) {
      expect(peerNames()).toContain(name)
      if (!linkedPeers.has(name)) continue
      const { dependencies = {} } = readJson(`${root}/peers/${name}/package.json`) as Manifest
      for (const [wanted, version] of Object.entries(dependencies)) {
        expect([wanted, versions.get(wanted) ?? version]).toEqual([wanted, version])
        versions.set(wanted, version)
      }
    }
  }
})

test('the compiler of npm run check leaves out what a group compiles', () => {
  const { exclude } = readJson(`${root}/tsconfig.json`) as { exclude: string[] }
  for (const { name, peers } of groups)
    if (peers.some((one) => linkedPeers.has(one))) expect(exclude).toContain(`**/*.${name}.test.ts`)
})
