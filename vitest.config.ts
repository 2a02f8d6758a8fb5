import { defineConfig } from 'vitest/config'

// Workspace packages resolve to their TypeScript source; nothing has to be built before a test.
const conditions = ['@skein/source', 'node', 'import', 'module', 'default']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: [
      'packages/*/{src,test}/**/*.test.{ts,tsx}',
      'conformance/**/*.test.ts',
      'examples/**/*.test.ts',
      'scripts/**/*.test.ts',
      'bench/**/*.test.ts',
    ],
    exclude: ['**/node_modules/**', '**/dist/**', '**/.cache/**', '**/.tmp/**'],
    testTimeout: 20_000,
    // Type tests (`*.test-d.ts`) run with `--typecheck`, as `npm test` does. Errors elsewhere are
    // `npm run check`'s to report.
    typecheck: {
      include: ['packages/*/{src,test}/**/*.test-d.ts', 'conformance/**/*.test-d.ts'],
      ignoreSourceErrors: true,
    },
  },
})
