/** One thing that is wrong, and the command that has to say so. */
export interface Breakage {
  readonly name: string
  /** Text added at the end of a file, which is made if it does not exist. */
  readonly append?: Readonly<Record<string, string>>
  /** Changes inside a JSON file. */
  readonly json?: Readonly<Record<string, (content: Json) => void>>
  /** npm arguments, run one after the other; the last one has to fail. */
  readonly commands: readonly (readonly string[])[]
  /** What the failing command has to print, so that it fails for this reason and no other. */
  readonly says: RegExp
}

// oxlint-disable-next-line typescript/no-explicit-any -- edits of JSON files of many shapes
export type Json = any

const check = [['run', 'check']]
const test = (file: string): string[][] => [['test', '--', file]]
const conformance = (file: string): string[][] => [
  ['test', '--', file],
  ['run', 'conformance', '--', '--results', '.tmp/test-results.json'],
]
const brokenTest = 'packages/base/src/broken.test.ts'
const imports = `import { expect, test } from 'vitest'\n\n`

export const breakages: readonly Breakage[] = [
  {
    name: 'a type error',
    append: { 'packages/base/src/error.ts': `\nexport const broken: number = 'text'\n` },
    commands: check,
    says: /error\.ts.*TS2322/,
  },
  {
    name: 'a type error in a test',
    append: { [brokenTest]: `${imports}test('x', () => expect('a'.missing).toBe(1))\n` },
    commands: check,
    says: /broken\.test\.ts.*TS2339/,
  },
  {
    name: 'an exported value without a written type',
    append: { 'packages/base/src/error.ts': `\nexport const broken = Math.max(1, 2)\n` },
    commands: check,
    says: /TS9010/,
  },
  {
    name: 'a lint error',
    append: { 'packages/base/src/broken.ts': `debugger\nexport {}\n` },
    commands: check,
    says: /no-debugger/,
  },
  {
    name: 'a file that is not formatted',
    append: { 'packages/base/src/broken.ts': `export const broken :number=1;\n` },
    commands: check,
    says: /\[warn\] packages\/base\/src\/broken\.ts/,
  },
  {
    name: 'console output in a package',
    append: { 'packages/base/src/broken.ts': `console.log('hello')\nexport {}\n` },
    commands: check,
    says: /no-console/,
  },
  {
    name: '`any` in a public type, with the linter silenced',
    append: {
      'packages/base/src/error.ts':
        '\n// oxlint-disable-next-line typescript/no-explicit-any\nexport declare function broken(x: any): void\n',
    },
    commands: check,
    says: /error\.d\.ts:\d+ has `any` in a public type/,
  },
  {
    name: 'a dependency of a package that has none',
    json: { 'packages/base/package.json': (content) => (content.dependencies = { zod: '4.6.7' }) },
    commands: check,
    says: /@skein\/base depends on zod/,
  },
  {
    name: 'an import that is not declared',
    append: { 'packages/base/src/broken.ts': `export { z } from 'zod'\n` },
    commands: check,
    says: /broken\.ts imports zod/,
  },
  {
    name: 'a version that is not exact',
    json: { 'package.json': (content) => (content.devDependencies.vite = '^8.3.8') },
    commands: check,
    says: /devDependencies\.vite is "\^8\.3\.8"/,
  },
  {
    name: 'a failing test',
    append: { [brokenTest]: `${imports}test('x', () => expect(1).toBe(2))\n` },
    commands: test(brokenTest),
    says: /1 failed/,
  },
  {
    name: 'a failing type test',
    append: {
      'packages/base/src/broken.test-d.ts': `import { expectTypeOf, test } from 'vitest'\n\ntest('x', () => expectTypeOf<string>().toEqualTypeOf<number>())\n`,
    },
    commands: test('packages/base/src/broken.test-d.ts'),
    says: /1 failed/,
  },
  {
    name: 'a focused test',
    append: { [brokenTest]: `${imports}test.only('x', () => expect(1).toBe(1))\n` },
    commands: test(brokenTest),
    says: /\.only/,
  },
  {
    name: 'a test file that does not load',
    append: {
      [brokenTest]: `${imports}import './absent.ts'\n\ntest('x', () => expect(1).toBe(1))\n`,
    },
    commands: test(brokenTest),
    says: /absent\.ts/,
  },
  {
    name: 'an example that prints something else',
    append: { 'examples/90-read-a-stream.ts': `console.log('more')\n` },
    commands: test('examples'),
    says: /90-read-a-stream/,
  },
  {
    name: 'a page that shows other code than runs',
    append: { 'README.md': '\n```ts file=examples/90-read-a-stream.ts#program\nold\n```\n' },
    commands: test('scripts/snippets'),
    says: /differs from what the page shows/,
  },
  {
    name: 'a link that leads nowhere',
    append: { 'docs/chat.md': '\nSee [the rest](rest.md).\n' },
    commands: check,
    says: /docs\/chat\.md: rest\.md does not exist/,
  },
  {
    name: 'an error code without its section',
    append: {
      'packages/base/src/broken.ts': `import { SkeinError } from './error.ts'\n\nexport const broken: SkeinError = new SkeinError('x', { code: 'NOT_DESCRIBED' })\n`,
    },
    commands: test('scripts/docs'),
    says: /NOT_DESCRIBED \(packages\/base\/src\/broken\.ts\)/,
  },
  {
    name: 'a failing row',
    append: { [brokenTest]: `${imports}test('UPP-001 x', () => expect(1).toBe(2))\n` },
    commands: conformance(brokenTest),
    says: /failing: UPP-001/,
  },
  {
    name: 'a test that names four rows',
    append: {
      [brokenTest]: `${imports}test('UPP-001 UPP-002 UPP-003 UPP-004 x', () => expect(1).toBe(1))\n`,
    },
    commands: conformance(brokenTest),
    says: /names 4 rows/,
  },
  {
    name: 'an export path without its file',
    json: {
      'packages/base/package.json': (content) =>
        (content.exports['./gone'] = { types: './dist/gone.d.ts', default: './dist/gone.js' }),
    },
    commands: [['run', 'build']],
    says: /exports\["\.\/gone"\] leads to \.\/dist\/gone\.js, which is not packed/,
  },
  {
    name: 'a Node built-in in a portable entry',
    append: {
      'packages/base/src/broken-node.ts': `import { readFileSync } from 'node:fs'\n\nexport const broken: typeof readFileSync = readFileSync\n`,
      'packages/base/src/index.ts': `export { broken } from './broken-node.ts'\n`,
    },
    commands: [['run', 'portability']],
    says: /node:fs is imported by packages\/base\/src\/broken-node\.ts/,
  },
  {
    name: 'an entry over its size budget',
    json: { 'scripts/portability/budgets.json': (content) => (content.entries['@skein/base'] = 1) },
    commands: [['run', 'portability']],
    says: /over the budget of 1 kB/,
  },
]
