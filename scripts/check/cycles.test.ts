import { expect, test } from 'vitest'
import { withFixture } from '../source/fixture.ts'
import { findFileKnots, findFolderKnots, findValueCycles } from './cycles.ts'

test('files and folders that import each other by value are found, through others too', () => {
  const sources = {
    'x/src/a/a.ts': `import { b } from '../b/b.ts'\nexport const a = b\n`,
    'x/src/b/b.ts': `import { c } from '../c/c.ts'\nexport const b = c\n`,
    'x/src/c/c.ts': `import { a } from '../a/a.ts'\nexport const c = a\n`,
  }
  withFixture(sources, ({ files }) => {
    expect(findValueCycles(files)).toEqual([
      'Folders import each other: packages/x/src/a → packages/x/src/b → packages/x/src/c → packages/x/src/a.',
      'Files import each other: packages/x/src/a/a.ts → packages/x/src/b/b.ts → packages/x/src/c/c.ts → packages/x/src/a/a.ts.',
    ])
  })
})

test('a cycle that needs a type is no cycle of values, but a knot of folders', () => {
  const sources = {
    'x/src/a/a.ts': `import type { B } from '../b/b.ts'\nexport type A = B | 1\n`,
    'x/src/b/b.ts': `import { inB } from '../c/c.ts'\nexport type B = typeof inB\n`,
    'x/src/c/c.ts': `import type { A } from '../a/a2.ts'\nexport const inB: A = 1\n`,
    'x/src/a/a2.ts': `export type A = 1\n`,
    'x/src/d/d.ts': `import type { A } from '../a/a2.ts'\nexport type D = A\n`,
  }
  withFixture(sources, ({ files }) => {
    expect(findValueCycles(files)).toEqual([])
    expect(findFolderKnots(files)).toEqual([
      ['packages/x/src/a', 'packages/x/src/b', 'packages/x/src/c'],
    ])
    // No file reaches itself: only the folders do.
    expect(findFileKnots(files)).toEqual([])
  })
})

test('folders that only list each other in index.ts are no knot', () => {
  const sources = {
    'x/src/a/index.ts': `export { b } from '../b/b.ts'\n`,
    'x/src/a/a.ts': `export const a = 1\n`,
    'x/src/b/b.ts': `import { a } from '../a/a.ts'\nexport const b = a\n`,
  }
  withFixture(sources, ({ files }) => expect(findFolderKnots(files)).toEqual([]))
})

test('two knots are two, the larger one first', () => {
  const importing = (from: string): string =>
    `import type { T } from '${from}'\nexport type T = T\n`
  const sources = {
    'x/src/a.ts': importing('./b.ts'),
    'x/src/b.ts': importing('./a.ts'),
    'x/src/c.ts': importing('./d.ts'),
    'x/src/d.ts': importing('./e.ts'),
    'x/src/e.ts': importing('./c.ts'),
    'x/src/f.ts': importing('./c.ts'),
  }
  withFixture(sources, ({ files }) => {
    expect(findFileKnots(files).map((knot) => knot.length)).toEqual([3, 2])
  })
})
