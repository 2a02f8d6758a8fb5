import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, expect, test } from 'vitest'
import { apiReport, findApiChanges, writeApiReports } from './api-report.ts'
import type { WorkspacePackage } from '../workspace.ts'

const folder = mkdtempSync(join(tmpdir(), 'skein-api-'))
const reports = join(folder, 'api')
afterAll(() => rmSync(folder, { recursive: true }))

const package_: WorkspacePackage = {
  name: '@skein/x',
  folder: join(folder, 'x'),
  manifest: {
    name: '@skein/x',
    exports: {
      '.': { types: './dist/index.d.ts', default: './dist/index.js' },
      './more': { node: { types: './dist/more.d.ts', default: './dist/more.js' } },
      './package.json': './package.json',
    },
  },
}
const files = {
  'index.d.ts': `export { send, type Sent as Receipt } from './send.ts';\nexport * from './kinds.ts';\n`,
  'send.d.ts': [
    `import type { Base } from './hidden.ts';`,
    `import type { Writable } from 'node:stream';`,
    `/** Sends. */`,
    `export declare function send(to: string): Promise<Sent>;`,
    `export declare function send(to: string, /* shouted */ hidden: {`,
    `    loudly: boolean;`,
    `}): void;`,
    `export interface Sent<T> extends Base<T> {`,
    `    /** When. */`,
    `    readonly at: number;`,
    `    readonly stream: Writable;`,
    `}`,
    `export declare const unseen: number;`,
    ``,
  ].join('\n'),
  'hidden.d.ts': `export interface Base<T> {\n    readonly url: T;\n}\n`,
  'kinds.d.ts': `export declare const Kind: {\n    readonly A: 'a';\n};\nexport type Kind = 'a';\n`,
  'more.d.ts': `export { send } from './send.ts';\nexport { Writable } from 'node:stream';\n`,
}

function write(changes: Partial<typeof files> = {}): void {
  mkdirSync(join(folder, 'x', 'dist'), { recursive: true })
  for (const [name, text] of Object.entries({ ...files, ...changes }))
    writeFileSync(join(folder, 'x', 'dist', name), text)
}

beforeEach(() => {
  write()
  writeApiReports([package_], reports)
})

test('names of every entry with their signatures, one line each, without members', () => {
  expect(apiReport(package_)).toBe(`# API of @skein/x

What users can import, written by \`node scripts/api.ts --write\` and compared by \`npm run check\`.

## @skein/x

3 names.

\`\`\`ts
const Kind: { … }
type Kind = 'a'
// exported as Receipt
interface Sent<T> extends Base<T>
function send(to: string): Promise<Sent>
function send(to: string, hidden: { loudly: boolean; }): void
\`\`\`

## @skein/x/more

2 names.

\`\`\`ts
export { Writable } from 'node:stream'
// send: as in @skein/x
\`\`\`
`)
})

test.each<[what: string, change: Partial<typeof files>, line: string]>([
  [
    'a parameter',
    { 'send.d.ts': files['send.d.ts'].replace('send(to: string): P', 'send(to?: string): P') },
    '+ function send(to?: string): Promise<Sent>',
  ],
  [
    'a member of a parameter',
    { 'send.d.ts': files['send.d.ts'].replace('loudly: boolean', 'loudly: number') },
    '+ function send(to: string, hidden: { loudly: number; }): void',
  ],
  [
    'what an interface extends',
    { 'send.d.ts': files['send.d.ts'].replace('extends Base<T>', 'extends Base<T[]>') },
    '+ interface Sent<T> extends Base<T[]>',
  ],
  ['a name that is gone', { 'more.d.ts': '' }, '- // send: as in @skein/x'],
  ['a new name', { 'kinds.d.ts': `${files['kinds.d.ts']}export type B = 1;\n` }, '+ type B = 1'],
])('%s cannot change unseen', (_, change, line) => {
  expect(findApiChanges([package_], reports)).toEqual([])
  write(change)
  const [problem, ...others] = findApiChanges([package_], reports)
  expect(others).toEqual([])
  expect(problem).toContain('node scripts/api.ts --write')
  expect(problem?.split('\n')).toContainEqual(`  ${line}`)
})

test('comments, members of types and what no one can reach may change', () => {
  write({
    'send.d.ts': files['send.d.ts']
      .replace('/** When. */', '/** At what time. */')
      .replace('readonly at: number', 'readonly at: string')
      .replace('unseen: number', 'unseen: string'),
  })
  expect(findApiChanges([package_], reports)).toEqual([])
})

test('the report of a package that is gone is a problem', () => {
  expect(findApiChanges([], reports)).toEqual([
    'api/x.md is the report of a package that does not exist.',
  ])
})
