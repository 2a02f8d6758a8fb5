import { globSync, readFileSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import type { ViteUserConfig } from 'vitest/config'

// Workspace packages resolve to their TypeScript source; nothing has to be built before a test.
// Not `module`: Node does not know it, and packages that have it ship bundler code behind it. Not `import`:
// Vitest passes these to Node, where it would hold for `require` too (pg requires pg-pool).
const conditions = ['@skein/source', 'node']

// Type tests run with `--typecheck`, as `npm test` does. Files that hold bare assertions, without
// `test`, are left to tsc in `npm run check`.
const typeTests = globSync('{packages/*/{src,test},conformance}/**/*.test-d.ts', {
  cwd: import.meta.dirname,
}).filter((file) =>
  readFileSync(`${import.meta.dirname}/${file}`, 'utf8').includes("from 'vitest'"),
)

const config: ViteUserConfig = defineConfig({
  resolve: {
    conditions,
    alias: { 'fast-check': `${import.meta.dirname}/conformance/support/seeded-fast-check.ts` },
  },
  ssr: { resolve: { conditions } },
  test: {
    include: [
      'packages/*/{src,test}/**/*.test.{ts,tsx}',
      'conformance/**/*.test.ts',
      'examples/**/*.test.ts',
      'scripts/**/*.test.ts',
      'bench/**/*.test.ts',
    ],
    exclude: [
      '**/node_modules/**',
      '**/dist/**',
      '**/.cache/**',
      '**/.tmp/**',
      '**/*.shared.test.ts', // see vitest.shared.config.ts
    ],
    // A test that asserts nothing cannot fail, so it fails.
    expect: { requireAssertions: true },
    testTimeout: 20_000,
    // Many files wait more than they work; without this two cores get one worker.
    maxWorkers: '100%',
    // Type errors outside the type tests are `npm run check`'s to report.
    typecheck: { include: typeTests, ignoreSourceErrors: true },
  },
})

export default config
