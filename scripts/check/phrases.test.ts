import { expect, test } from 'vitest'
import {
  findPhraseProblems,
  findPhrases,
  folderOf,
  lowerBaseline,
  type Finding,
} from './phrases.ts'

function phrasesOf(text: string, path = 'docs/page.md'): string[] {
  return findPhrases(path, text).map(({ line, phrase }) => `${line} ${phrase}`)
}

test.each([
  ['The thread goes on.', 'goes on'],
  ['Both start at once.', 'at once'],
  ['The model is not told.', 'is told'],
  ['Whoever asks', 'whoever'],
  ['what stands there', 'stands'],
])('%s', (text, phrase) => {
  expect(phrasesOf(text)).toEqual([`1 ${phrase}`])
})

test('a phrase is found over a line break of prose, a comment, a quotation and a joined string', () => {
  expect(phrasesOf('It goes\non.')).toEqual(['1 goes on'])
  expect(phrasesOf('/**\n * It goes\n   * on.\n */', 'a.ts')).toEqual(['2 goes on'])
  expect(phrasesOf('// It goes\n// on.', 'a.ts')).toEqual(['1 goes on'])
  expect(phrasesOf('> It goes\n> on.')).toEqual(['1 goes on'])
  expect(phrasesOf("'it goes ' +\n  'on'", 'a.ts')).toEqual(['1 goes on'])
  expect(phrasesOf("'it goes' +\n  ' on'", 'a.ts')).toEqual(['1 goes on'])
})

test('names, values of tests and ordinary uses of the words are no phrases', () => {
  expect(phrasesOf("load('nobody')", 'a.ts')).toEqual([])
  expect(phrasesOf('const goesOn = besides + upstanding', 'a.ts')).toEqual([])
  expect(phrasesOf('It stands for a week; a stand-in; a standing grant.')).toEqual([])
})

test('a metaphor in the name of a file or folder is found', () => {
  expect(phrasesOf('', 'packages/a/src/approval-desk.ts')).toEqual(['1 file name'])
  expect(phrasesOf('', 'conformance/laws/a.test.ts')).toEqual(['1 file name'])
  expect(phrasesOf('', 'packages/a/src/classroom-doorbell.ts')).toEqual([])
})

const finding = (path: string): Finding => ({
  path,
  line: 1,
  phrase: 'nobody',
  instead: 'no one',
  text: 'nobody knows',
})

test('a folder may keep what its baseline has, and not one more', () => {
  const two = [finding('packages/a/src/x.ts'), finding('packages/a/test/y.ts')]
  expect(findPhraseProblems(two, { 'packages/a': { nobody: 2 } })).toEqual([])
  expect(findPhraseProblems(two, { 'packages/a': { nobody: 1 } })).toHaveLength(2)
  expect(findPhraseProblems(two, { 'packages/b': { nobody: 2 } })).toHaveLength(2)
})

test('a baseline is lowered, never raised', () => {
  const findings = [finding('packages/a/src/x.ts'), finding('docs/page.md')]
  const before = { 'packages/a': { nobody: 3, stands: 1 }, scripts: { nobody: 1 } }
  expect(lowerBaseline(before, findings)).toEqual({ 'packages/a': { nobody: 1 } })
})

test('folders are packages, or those of the repository', () => {
  expect(folderOf('packages/ai/src/llm.ts')).toBe('packages/ai')
  expect(folderOf('docs/guides/tools.md')).toBe('docs')
  expect(folderOf('README.md')).toBe('.')
})
