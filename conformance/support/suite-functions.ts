import { describe, expect, test } from 'vitest'

/**
 * Vitest for a contract suite of ours, which knows no test runner and reports by throwing: that it did
 * not throw is the assertion. `prefix` goes before each title.
 */
export function suiteFunctions(prefix = ''): {
  describe(name: string, body: () => void): unknown
  test(name: string, body: () => Promise<void>): unknown
} {
  return {
    describe,
    test: (name, body) =>
      test(`${prefix}${name}`, async () => {
        await expect(body()).resolves.toBeUndefined()
      }),
  }
}
