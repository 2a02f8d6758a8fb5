import fc from 'fast-check'
import { expect, test } from 'vitest'
import { createGlob } from './glob.ts'

test.each([
  ['/*.md', '/a.md', true],
  ['*.md', '/a.md', true],
  ['/*.md', '/x/a.md', false],
  ['/**/*.md', '/a.md', true],
  ['**/*.md', '/x/y/a.md', true],
  ['/x/**', '/x/a', true],
  ['/x/**', '/x/a/b', true],
  ['/x/**', '/x', false],
  ['/x/**/z', '/x/z', true],
  ['/x/**/z', '/x/y/y/z', true],
  ['/x/**/z', '/x/y/zz', false],
  ['/a?c', '/abc', true],
  ['/a?c', '/a/c', false],
  ['/a?c', '/a🙂c', true],
  ['/a**c', '/abbc', true],
  ['/a**c', '/ab/c', false],
  ['/[a]', '/a', false],
  ['/[a]', '/[a]', true],
  ['/a.c', '/abc', false],
  ['/**/a/**/b', '/a/x/a/b', true],
  ['', '/a', false],
])('%s and %s: %s', (pattern, path, expected) => {
  expect(createGlob(pattern)(path)).toBe(expected)
})

test('agrees with a plain recursive matcher', () => {
  const piece = fc.constantFrom('a', 'b', '*', '?', '**')
  const pattern = fc.array(fc.array(piece, { minLength: 1, maxLength: 3 }), { maxLength: 4 })
  const name = fc.string({ unit: fc.constantFrom('a', 'b'), minLength: 1, maxLength: 3 })
  fc.assert(
    fc.property(pattern, fc.array(name, { minLength: 1, maxLength: 4 }), (parts, names) => {
      const segments = parts.map((part) => part.join(''))
      const expected = slow(segments.at(-1) === '**' ? [...segments, '*'] : segments, names)
      expect(createGlob(segments.join('/'))(`/${names.join('/')}`)).toBe(expected)
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 20_000 : 300 },
  )
})

test('a pattern made to explode does a bounded amount of work', () => {
  const path = `/${'a'.repeat(250)}`.repeat(4)
  expect(createGlob(`/**/${'*a'.repeat(100)}*b`)(path)).toBe(false)
  expect(createGlob(`${'/**/*a'.repeat(100)}/b`)(path)).toBe(false)
})

/** The meaning, without care for time. */
function slow(pattern: readonly string[], names: readonly string[]): boolean {
  const [first, ...rest] = pattern
  if (first === undefined) return names.length === 0
  if (first === '**')
    return slow(rest, names) || (names.length > 0 && slow(pattern, names.slice(1)))
  return names.length > 0 && slowName(first, names[0]!) && slow(rest, names.slice(1))
}

function slowName(pattern: string, name: string): boolean {
  if (pattern === '') return name === ''
  const rest = pattern.slice(1)
  if (pattern[0] === '*') {
    return slowName(rest, name) || (name !== '' && slowName(pattern, name.slice(1)))
  }
  return (
    name !== '' && (pattern[0] === '?' || pattern[0] === name[0]) && slowName(rest, name.slice(1))
  )
}
