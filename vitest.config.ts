import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { defineConfig } from 'vitest/config'
import type { ViteUserConfig } from 'vitest/config'
import { groups, type Group } from './scripts/test/groups.ts'

// Workspace packages resolve to their TypeScript source; nothing has to be built before a test.
// Not `module`: Node does not know it, and packages that have it ship bundler code behind it. Not `import`:
// Vitest passes these to Node, where it would hold for `require` too (pg requires pg-pool).
const conditions = ['@skein/source', 'node']

// Type tests run with `--typecheck`, as `npm test` does. Files that hold bare assertions, without
// `test`, are left to tsc in `npm run check`; those of a group are left to tsc in its own run.
const typeTests = globSync('{packages/*/{src,test},conformance}/**/*.test-d.ts', {
  cwd: import.meta.dirname,
  exclude: (path) => groups.some(({ name }) => path.endsWith(`.${name}.test-d.ts`)),
}).filter((file) =>
  readFileSync(`${import.meta.dirname}/${file}`, 'utf8').includes("from 'vitest'"),
)

const folders = ['packages/*/src', 'packages/*/test', 'conformance', 'examples', 'scripts', 'bench']
const outside = ['**/node_modules/**', '**/dist/**', '**/.cache/**', '**/.tmp/**']
/** The conformance data, where it is; only the group `shared` sees it. */
const sharedFolder = resolve(import.meta.dirname, process.env['SKEIN_SHARED'] ?? '../shared')

// Node keeps what it has compiled of workers and of the programs that tests start: each loads in half the time.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, '.cache', 'compiled')

type Project = NonNullable<NonNullable<ViteUserConfig['test']>['projects']>[number]

/** What `npm test` runs: every file that belongs to no group. */
const fast: Project = {
  extends: true,
  test: {
    name: 'fast',
    include: folders.map((folder) => `${folder}/**/*.test.{ts,tsx}`),
    exclude: [...outside, ...groups.map(({ name }) => `**/*.${name}.test.{ts,tsx}`)],
    env: { SKEIN_SHARED: 'none' },
    // The files of a worker share its modules: a new process and new modules for each of 540 files would cost more than
    // their tests. So a test puts back what it changes outside itself: variables, timers, spies.
    isolate: false,
    testTimeout: 60_000,
    // The type tests alone; other type errors are `npm run check`'s to report.
    typecheck: {
      enabled: true,
      tsconfig: './tsconfig.types.json',
      include: typeTests,
      ignoreSourceErrors: true,
    },
  },
}

const groupProject = ({ name, testTimeoutMs, workers }: Group): Project => ({
  extends: true,
  test: {
    name,
    include: [
      ...folders.map((folder) => `${folder}/**/*.${name}.test.{ts,tsx}`),
      // The tests of governance run once more, judged by the specification's own schemas.
      ...(name === 'shared' ? ['packages/governance/test/core/*.test.ts'] : []),
    ],
    exclude: outside,
    env: {
      SKEIN_SHARED: name === 'shared' ? sharedFolder : 'none',
      // See conformance/support/counts.ts.
      ...(name === 'long' && { SKEIN_LONG: '1' }),
    },
    globalSetup: join(import.meta.dirname, 'scripts/test/install-group.ts'),
    testTimeout: testTimeoutMs,
    hookTimeout: testTimeoutMs,
    maxWorkers: workers,
    sequence: { groupOrder: 1 + groups.findIndex((group) => group.name === name) },
    typecheck: { include: [] },
  },
})

const config: ViteUserConfig = defineConfig({
  // Named, so that a tsconfig.json in a folder above the clone has no say: tsconfig.json leaves tests of groups out.
  tsconfig: join(import.meta.dirname, 'tsconfig.base.json'),
  resolve: {
    conditions,
    alias: { 'fast-check': `${import.meta.dirname}/conformance/support/seeded-fast-check.ts` },
  },
  ssr: { resolve: { conditions } },
  test: {
    // A test that asserts nothing cannot fail, so it fails.
    expect: { requireAssertions: true },
    // Many files wait more than they work; without this two cores get one worker.
    maxWorkers: '100%',
    projects: [fast, ...groups.map(groupProject)],
  },
})

export default config
