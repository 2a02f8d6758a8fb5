import { defineConfig } from 'vitest/config'

export default defineConfig({
  resolve: { conditions: ['@skein/source', 'node', 'import', 'module', 'default'] },
  ssr: { resolve: { conditions: ['@skein/source', 'node', 'import', 'module', 'default'] } },
  test: {
    include: [
      'packages/*/src/**/*.test.ts',
      'conformance/**/*.test.ts',
      'examples/**/*.test.ts',
      'scripts/**/*.test.ts',
      'bench/**/*.test.ts',
    ],
    testTimeout: 20_000,
  },
})
