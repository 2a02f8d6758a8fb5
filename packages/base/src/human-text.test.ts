import { expect, test } from 'vitest'
import { displayText } from './human-text.ts'

test('ordinary text of any script, emoji, line breaks and tabs stay as they are', () => {
  const text = 'Grüße,\n\tשלום 你好 👋🏽'
  expect(displayText(text)).toBe(text)
})

test('terminal sequences, hidden and turning characters become visible', () => {
  expect(displayText('a\u001b[2Jb')).toBe('a\\u{1b}[2Jb')
  expect(displayText('pay \u202e001\u202c')).toBe('pay \\u{202e}001\\u{202c}')
  expect(displayText('in\u200bvisible\r')).toBe('in\\u{200b}visible\\u{d}')
  expect(displayText('half \ud800')).toBe('half \\u{d800}')
})

test('one line has no line breaks', () => {
  expect(displayText('a\nb\tc', { isLine: true })).toBe('a\\u{a}b\\u{9}c')
})
