import { expect, test } from 'vitest'
import { closest } from './closest.ts'

test('the known word with the fewest changed letters is found, whatever its case', () => {
  expect(closest('thred', ['run', 'thread', 'threads'])).toBe('thread')
  expect(closest('MODLE', ['mode', 'model'])).toBe('mode')
  expect(closest('Model', ['mode', 'MODEL'])).toBe('MODEL')
})

test('a word that is too far from every known one has no suggestion', () => {
  expect(closest('xyz', ['run', 'thread'])).toBeUndefined()
  expect(closest('thread', [])).toBeUndefined()
  expect(closest('', ['run'])).toBeUndefined()
})

test('the caller may allow more changed letters than a third of the word', () => {
  expect(closest('rn', ['runs'])).toBeUndefined()
  expect(closest('rn', ['runs'], 2)).toBe('runs')
})
