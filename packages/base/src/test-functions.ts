/** The functions of your test runner: `describe` groups tests, `test` declares one. */
export interface TestFunctions {
  describe(name: string, body: () => void): unknown
  test(name: string, body: () => Promise<void>): unknown
}
