import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { measure, type SourceFile } from './measure.ts'

/** A small workspace for a test of a check. */
export interface Fixture {
  readonly root: string
  readonly files: readonly SourceFile[]
}

/** Writes source files below `packages/`, by path (`ai/src/llm.ts`), and hands them to the test. */
export function withFixture(
  sources: Readonly<Record<string, string>>,
  test: (fixture: Fixture) => void,
): void {
  const root = mkdtempSync(join(tmpdir(), 'skein-source-'))
  try {
    for (const [path, text] of Object.entries(sources)) {
      const file = join(root, 'packages', path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, text)
    }
    test({ root, files: measure(root) })
  } finally {
    rmSync(root, { recursive: true })
  }
}
