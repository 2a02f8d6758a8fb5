import { existsSync, globSync } from 'node:fs'
import { join } from 'node:path'
import { root as workspace } from '../workspace.ts'
import { groupOf } from './groups.ts'

/** What `npm run test:changed` runs. */
export interface ChangePlan {
  /** Code that has changed: the tests that import it run. */
  readonly changed: readonly string[]
  /** Fast tests that run it in another way: as a program, through the built page, by reading it. */
  readonly tests: readonly string[]
  /** Groups that `npm run test:all -- …` should run before such a change is merged. */
  readonly groups: readonly string[]
}

/** Tests that an import does not lead to, by what they read or start. The first entry that fits counts. */
const readers: readonly (readonly [changed: RegExp, tests: string])[] = [
  [/^examples\/agents\//, '{packages/cli/test,examples}'],
  [/^examples\//, 'examples'],
  [/^packages\/create-skein\//, 'packages/create-skein'],
  [/^packages\/cli\//, 'packages/cli'],
  [
    /^(?:docs\/http|SECURITY)\.md$/,
    '{packages/server/test/{http/operations,security-limits},scripts/docs/*}.test.ts',
  ],
  [
    /^docs\/(?:guides\/|first-five-minutes)/,
    '{scripts/{docs,snippets}/**/*,examples/readme,packages/cli/test/{guides,first-five-minutes}}.test.ts',
  ],
  [/\.md$/, '{scripts/{docs,snippets}/**/*,examples/readme,packages/*/src/readme}.test.ts'],
  [/^api\//, 'scripts/check'],
  [/package\.json$/, 'scripts'],
  [/^conformance\/rows\//, 'conformance/reporter'],
]

/** Packages whose real proof is a group, because a server or a browser is what they are about. */
const groupOfPackage: Readonly<Record<string, string>> = {
  postgres: 'postgres',
  restate: 'restate',
  studio: 'browser',
  'create-skein': 'packed',
}

export function planOfChanges(files: readonly string[], root: string = workspace): ChangePlan {
  const changed = files.filter(
    (file) => /\.(tsx?|jsx?|mjs|json|css)$/.test(file) && !file.startsWith('peers/'),
  )
  const tests = new Set<string>()
  const groups = new Set<string>()
  for (const file of files) {
    const own = groupOf(file)?.name
    if (own !== undefined) groups.add(own)
    const [, owner = '', folder = ''] = /^packages\/([^/]+)\/src\/(?:([^/]+)\/)?/.exec(file) ?? []
    const group = groupOfPackage[/^packages\/([^/]+)/.exec(file)?.[1] ?? '']
    if (group !== undefined) groups.add(group)
    const [, peers] = /^peers\/([^/]+)\//.exec(file) ?? []
    if (peers !== undefined && groupOf(`x.${peers}.test.ts`)) groups.add(peers)
    // Integration tests of a package are in `test/`, those of one folder in the folder of the same name, if there is one.
    const narrow = `packages/${owner}/test/${folder}`
    if (owner !== '')
      addTests(folder !== '' && existsSync(join(root, narrow)) ? narrow : `packages/${owner}/test`)
    const reader = readers.find(([pattern]) => pattern.test(file))
    if (reader) addTests(reader[1])
  }
  return { changed, tests: [...tests].toSorted(), groups: [...groups].toSorted() }

  function addTests(place: string): void {
    const pattern = place.endsWith('.test.ts') ? place : `${place}/**/*.test.{ts,tsx}`
    for (const path of globSync(pattern, { cwd: root }))
      if (groupOf(path) === undefined && !/node_modules|\bdist\b/.test(path))
        tests.add(path.replaceAll('\\', '/'))
  }
}
