import { defineConfig, mergeConfig } from 'vitest/config'
import type { ViteUserConfig } from 'vitest/config'
import base from './vitest.config.ts'

// The tests that add the conformance data beside the repository; `npm test` runs them where it is there.
// The tests of governance run once more, judged by the specification's own schemas.
const config: ViteUserConfig = mergeConfig(
  { ...base, test: { ...base.test, include: [], exclude: [], typecheck: {} } },
  defineConfig({
    test: {
      include: ['conformance/shared/*.shared.test.ts', 'packages/governance/test/core/*.test.ts'],
      testTimeout: 120_000,
    },
  }),
)

export default config
