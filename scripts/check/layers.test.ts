import { expect, test } from 'vitest'
import { withFixture } from '../source/fixture.ts'
import { findLayerProblems } from './layers.ts'

const rules = {
  packages: ['low', 'high'],
  high: ['contract', 'wires', 'wires/* tools', '.'],
}
const sources = {
  'low/src/a.ts': `export const a = 1\n`,
  'high/src/index.ts': `export * from './wires/one/request.ts'\n`,
  'high/src/main.ts': `import { tool } from './tools/tool.ts'\nexport const main = tool\n`,
  'high/src/contract/part.ts': `export const part = 1\n`,
  'high/src/tools/tool.ts': `import { part } from '../contract/part.ts'\nexport const tool = part\n`,
  'high/src/wires/wire.ts': `import { part } from '../contract/part.ts'\nexport const wire = part\n`,
  'high/src/wires/one/request.ts': `import { wire } from '../wire.ts'\nimport { a } from '@skein/low'\nexport const request = [wire, a]\n`,
}

function problemsWith(changes: Readonly<Record<string, string>>): string[] {
  let problems: string[] = []
  withFixture({ ...sources, ...changes }, ({ files }) => {
    problems = findLayerProblems(files, rules)
  })
  return problems
}

test('imports of lower layers are allowed, at any distance, and index.ts may import everything', () => {
  expect(problemsWith({})).toEqual([])
})

test('a folder imports no value from a layer above, of its own layer or from src itself', () => {
  expect(
    problemsWith({
      'high/src/contract/part.ts': `import { wire } from '../wires/wire.ts'\nexport const part = wire\n`,
    }),
  ).toEqual([
    'packages/high/src/contract/part.ts imports packages/high/src/wires/wire.ts, but wires is not in a layer below contract.',
  ])
  expect(
    problemsWith({
      'high/src/wires/two/request.ts': `import { request } from '../one/request.ts'\nexport const again = request\n`,
    }),
  ).toEqual([
    'packages/high/src/wires/two/request.ts imports packages/high/src/wires/one/request.ts, but wires/one is not in a layer below wires/two.',
  ])
  expect(
    problemsWith({
      'high/src/tools/tool.ts': `import { main } from '../main.ts'\nexport const tool = main\n`,
    }),
  ).toEqual([
    'packages/high/src/tools/tool.ts imports packages/high/src/main.ts, but . is not in a layer below tools.',
  ])
})

test('types may be imported from above in the same package', () => {
  expect(
    problemsWith({
      'high/src/contract/part.ts': `import type { wire } from '../wires/wire.ts'\nexport type Part = typeof wire\n`,
    }),
  ).toEqual([])
})

test('a package imports nothing from a package above, not even a type', () => {
  expect(
    problemsWith({ 'low/src/a.ts': `export type { main as A } from '@skein/high/main'\n` }),
  ).toEqual(['packages/low/src/a.ts imports the package high, which is not in a layer below low.'])
})

test('a new file needs no rule; a new folder or package needs one word', () => {
  expect(problemsWith({ 'high/src/tools/second.ts': `export const second = 2\n` })).toEqual([])
  expect(problemsWith({ 'high/src/tools/deep/third.ts': `export const third = 3\n` })).toEqual([])
  expect(problemsWith({ 'high/src/speech/say.ts': `export const say = 1\n` })).toEqual([
    'packages/high/src/speech is in no layer. Add it to `high` in scripts/check/layers.ts, above what it imports and below what imports it.',
  ])
  expect(problemsWith({ 'new/src/a.ts': `export const b = 1\n` })[0]).toContain(
    'packages/new is in no layer.',
  )
})

test('a rule that names a folder that does not exist is reported', () => {
  withFixture(sources, ({ files }) => {
    expect(findLayerProblems(files, { ...rules, high: [...rules.high, 'gone'] })).toEqual([
      'scripts/check/layers.ts names gone (high), which does not exist.',
    ])
  })
})
