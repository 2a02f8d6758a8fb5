import { transformSync } from 'esbuild'
import { afterEach, expect, test } from 'vitest'
import { plantMutants, type MutantKind } from './mutants.ts'

const globals = globalThis as { __skeinMutant?: (file: string, id: number) => boolean }
// These tests also run under the switch itself when their own row is mutated.
const before = globals.__skeinMutant
afterEach(() => {
  if (before === undefined) delete globals.__skeinMutant
  else globals.__skeinMutant = before
})

/** Each change of a source, as `kind: before -> after`. */
function changes(source: string, kind?: MutantKind): string[] {
  return plantMutants(source, 'a.ts')
    .mutants.filter((mutant) => kind === undefined || mutant.kind === kind)
    .map((mutant) => `${mutant.before} -> ${mutant.after}`)
}

/** The function `f` of a source, with one mutant on or, without a number, none. */
function run(source: string, id?: number): (...args: unknown[]) => unknown {
  globals.__skeinMutant = (file, asked) => file === 'a.ts' && asked === id && asked > 0
  const { code } = transformSync(plantMutants(source, 'a.ts').code, { loader: 'ts' })
  return new Function(`${code}; return f`)() as (...args: unknown[]) => unknown
}

/** What `f` returns with each mutant on, one after the other. */
function results(source: string, ...args: unknown[]): unknown[] {
  return plantMutants(source, 'a.ts').mutants.map(({ id }) => run(source, id)(...args))
}

test('operators become others', () => {
  expect(changes('const f = (a, b) => a === b')).toEqual(['a === b -> (a) !== (b)'])
  expect(changes('const f = (a, b) => a < b')).toEqual([
    'a < b -> (a) <= (b)',
    'a < b -> (a) >= (b)',
  ])
  expect(changes('const f = (a, b) => a && (b ?? a)')).toEqual([
    'a && (b ?? a) -> (a) || ((b ?? a))',
    'b ?? a -> (b) && (a)',
  ])
  expect(changes('const f = (a) => !a')).toEqual(['!a -> (a)'])
  expect(results('const f = (a, b) => a + b * 2', 5, 3)).toEqual([-1, 6.5, 14])
  expect(changes('const f = (a) => `<${a}` + a + ">"', 'operator')).toEqual([])
})

test('conditions are negated, once each', () => {
  const source = 'function f(a) { if (a.ok) { return a.x } return a.y ? 1 : 2 }'
  expect(changes(source, 'condition')).toEqual(['a.ok -> !(a.ok)', 'a.y -> !(a.y)'])
  expect(changes('function f(a) { if (a === b) g(); if (a < b) g() }', 'condition')).toEqual([])
  expect(changes('function f(a) { while (a.next()) g() }', 'condition')).toHaveLength(1)
})

test('constants change where they are values', () => {
  const source = `
    import { g } from './g.ts'
    function f(a: 'one' | 2 = 'one'): { key: 'k' } {
      'use strict'
      return { 'key': 'k', on: true, many: 7, text: 'prose for people', ['x']: import('./g.ts') }
    }`
  expect(changes(source, 'constant')).toEqual([
    "'one' -> ''",
    "'k' -> ''",
    'true -> false',
    '7 -> 7 + 1',
    "'x' -> ''",
  ])
})

test('statements are left out', () => {
  const source = `
    function f(log, fail) {
      if (fail) throw new Error('it failed')
      else log.push(1)
      log[1] = log.length
      return log
    }`
  expect(changes(source, 'statement')).toEqual([
    "throw new Error('it failed') -> ",
    'log.push(1) -> ',
    'log[1] = log.length -> ',
    'log -> undefined',
  ])
  const { mutants } = plantMutants(source, 'a.ts')
  const idOf = (before: string) => mutants.find((mutant) => mutant.before.startsWith(before))?.id
  expect(run(source)([], false)).toEqual([1, 1])
  expect(run(source, idOf('log.push'))([], false)).toEqual([undefined, 0])
  expect(() => run(source)([], true)).toThrow('it failed')
  expect(run(source, idOf('throw'))([], true)).toEqual([undefined, 0])
  expect(run(source, mutants.at(-1)?.id)([], false)).toBeUndefined()
})

test('what runs when a module is loaded, and types, stay', () => {
  expect(changes("const limit = 5 + 3\nregister('x')\ntype T = { a: 1 }")).toEqual([])
  expect(changes('const f = (a) => a as 1 | 2')).toEqual([])
  expect(changes('class A extends B { static s = 1; n = 2; constructor() { super() } }')).toEqual([
    '2 -> 2 + 1',
  ])
})

test('with the switch off, planted code does what the source does, on the same lines', () => {
  const source = `
    function f(list: readonly number[]): number {
      let sum = 0
      for (const x of list) if (x > 1 && x !== 3 || x === -1) sum += x as number
      for (let i = 0; i < 3; i++) { sum = sum ** (i === 2 ? 1 : 1) }
      do sum -= 1; while (sum > 100)
      return (sum)
    }`
  expect(run(source)([1, 2, 3, 4, -1])).toBe(4)
  const lines = plantMutants(source, 'a.ts').code.trimEnd().split('\n')
  expect(lines).toHaveLength(source.split('\n').length + 1)
  expect(plantMutants(source, 'a.ts').mutants[0]).toMatchObject({ line: 3, before: '0' })
})

test('a text of several code units moves nothing', () => {
  const source = "const f = (a) => { const s = '🧵é'; return a === 1 ? s : 'no' }"
  expect(run(source)(1)).toBe('🧵é')
  expect(changes(source, 'operator')).toEqual(['a === 1 -> (a) !== (1)'])
})

test('the parts of JSX that are no expressions stay', () => {
  const { mutants } = plantMutants(
    'const f = (a) => <p className="x" hidden={a === 1}>1</p>',
    'a.tsx',
  )
  expect(mutants.map((mutant) => mutant.before)).toEqual(['a === 1', '1'])
})

test('an endless loop asks the switch in every round', () => {
  const source = 'function f() { for (;;); }'
  const { code } = plantMutants(source, 'a.ts')
  let rounds = 0
  globals.__skeinMutant = () => {
    if (++rounds === 10) throw new Error('enough')
    return false
  }
  expect(() => (new Function(`${code}; return f`)() as () => void)()).toThrow('enough')
})

test('a source that does not parse is an error that names the file', () => {
  expect(() => plantMutants('const x = (1', 'broken.ts')).toThrow(/broken\.ts/)
})
