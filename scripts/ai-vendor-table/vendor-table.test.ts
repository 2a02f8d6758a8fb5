import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { page, vendorTable, withTable } from './vendor-table.ts'

test('the README shows what the vendor pages say (fix with `node --conditions=@skein/source scripts/ai-vendor-table.ts`)', async () => {
  const text = readFileSync(page, 'utf8')
  expect(text).toBe(withTable(text, await vendorTable()))
})

test('the table has a row for every vendor, with what it can and cannot do', async () => {
  const rows = (await vendorTable()).split('\n')
  const cells = (name: string): string[] =>
    (rows.find((row) => row.startsWith(`| \`${name}\``)) ?? '')
      .split('|')
      .map((cell) => cell.trim())
  expect(rows).toHaveLength(18) // head, rule, 15 vendors, line end
  expect(cells('anthropic')[2]).toBe('anthropic-messages')
  expect(cells('anthropic').slice(10, 12)).toEqual(['–', '–'])
  expect(cells('openai')[2]).toBe('openai-responses, openai-chat')
  expect(cells('openai')[11]).toBe('generate, edit, stream')
  expect(cells('google')[10]).toBe('yes')
})

test('a page without marks is an error, not a page without a table', () => {
  expect(() => withTable('# Title\n', '| a |\n')).toThrow('vendors:start')
})
