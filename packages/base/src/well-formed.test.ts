import { expect, test } from 'vitest'
import { wellFormed, wellFormedJson } from './well-formed.ts'

const [first, second] = ['😀'.slice(0, 1), '😀'.slice(1)]

test.each([
  ['', ''],
  ['plain 😀', 'plain 😀'],
  [`cut ${first}`, 'cut \uFFFD'],
  [`${second}${first} both`, '\uFFFD\uFFFD both'],
])('%j', (text, repaired) => {
  expect(wellFormed(text)).toBe(repaired)
})

test('JSON text keeps everything but lone surrogates', () => {
  const value = { a: `\\ud83d \\\\ud83d ${first}`, [`${second}k`]: ['😀', '\\', `\\${first}`] }
  const repaired = JSON.parse(wellFormedJson(JSON.stringify(value))) as object
  expect(repaired).toEqual({ a: '\\ud83d \\\\ud83d \uFFFD', '\uFFFDk': ['😀', '\\', '\\\uFFFD'] })
})
