import { expect, test } from 'vitest'
import { maskSource } from './mask.ts'
import { mutationsOf } from './mutations.ts'

const source = `import { a } from './a.ts'
// if (x === 1) return true
export function f(x: number, list: Array<number>): string {
  if (x === 1 && list.length > 2) return 'one'
  list.push(x)
  return /a && b/.test('c || d') ? \`\${x} + 1\` : 'no'
}
`
const lines = new Set([1, 2, 3, 4, 5, 6])

test('only code is changed: no comment, string, template or regular expression', () => {
  const { code } = maskSource(source)
  expect(code).toHaveLength(source.length)
  for (const text of ['return true', 'one', 'a && b', 'c || d', '+ 1'])
    expect(code).not.toContain(text)
})

test('conditions, operators, constants, results and calls are broken one at a time', () => {
  const after = mutationsOf(source, lines).map((mutation) => mutation.after)
  expect(after).toContain("if (!(x === 1 && list.length > 2)) return 'one'")
  expect(after).toContain("if (x !== 1 && list.length > 2) return 'one'")
  expect(after).toContain("if (x === 1 || list.length > 2) return 'one'")
  expect(after).toContain("if (x === 1 && list.length <= 2) return 'one'")
  expect(after).toContain("if (x === 1 && list.length > 3) return 'one'")
  expect(after).toContain("if (x === 1 && list.length > 2) return ''")
  expect(after).toContain('void 0')
  expect(after).toContain('return undefined')
})

test('imports stay, and lines that did not run', () => {
  const mutations = mutationsOf(source, lines)
  expect(
    mutations.every(({ source: mutated }) => mutated.startsWith("import { a } from './a.ts'")),
  ).toBe(true)
  expect(mutationsOf(source, new Set([5])).map(({ line }) => line)).toEqual([5])
})

test('every mutant differs from the source in one place and still parses', () => {
  for (const { source: mutated } of mutationsOf(source, lines)) expect(mutated).not.toBe(source)
  expect(mutationsOf('const x: number = (1', new Set([1]))).toEqual([])
})
