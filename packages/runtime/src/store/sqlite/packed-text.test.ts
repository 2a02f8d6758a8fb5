import fc from 'fast-check'
import { expect, test } from 'vitest'
import { sha256Hex } from '@skein/base'
import { MAX_WORDS, packText, unpackText, words } from './packed-text.ts'

const time = fc.date({ noInvalidDate: true }).map((date) => date.toISOString())
const hex = (length: number): fc.Arbitrary<string> =>
  fc
    .array(fc.constantFrom(...'0123456789abcdef'), { minLength: length, maxLength: length })
    .map((all) => all.join(''))
const piece = fc.oneof(
  fc.constantFrom(...words),
  fc.uuid(),
  time,
  hex(64),
  hex(32),
  hex(31),
  fc.string(),
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    '2026-02-30T00:00:00.000Z',
    '2026-13-01T99:99:99.999Z',
    '0000-01-01T00:00:00.000Z',
  ),
  fc.constantFrom('\ud800', '\x01', '\x05', 'ä', '😀', '\u007f', '\u0080', 'ÿ'),
)

test('whatever was packed is unpacked as it was', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      const text = pieces.join('').replaceAll(/[\ud800-\udfff]/gu, '')
      expect(unpackText(packText(text))).toBe(text)
    }),
    { numRuns: 2_000 },
  )
})

test('JSON of anything is unpacked as it was', () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 4 }), (json) => {
      const text = JSON.stringify(JSON.parse(json))
      expect(unpackText(packText(text))).toBe(text)
    }),
    { numRuns: 2_000 },
  )
})

// The row was written by the first version of the packer.
test('a row of an earlier version is unpacked, and is packed in the same way now', () => {
  const text =
    '{"type":"evidence_added","evidenceId":"01a1e3aa-8c8a-72b8-bbea-3809f5f4749a#3","data":{"hash":"sha256:0916f06f7f081e78322c255eeadd7150359ca91ee934d590bd1b23b1e38aa706"},"trace_id":"06f25beedd7a53d785b16f6c9812203a","at":"2026-11-16T09:22:47.567Z","text":"ä"}'
  const row =
    'BS4BAaHjqoyKcri76jgJ9fR0miMzBTADCRbwb38IHngyLCVe6t1xUDWcqR7pNNWQvRsjseOKpwYifSwidHJhY2VfaWQiOiIEBvJb7t16U9eFsW9smBIgOgVnAgGh46qMjyIsInRleHQiOiLDpCJ9'
  expect(unpackText(Buffer.from(row, 'base64'))).toBe(text)
  expect(Buffer.from(packText(text) as Uint8Array).toString('base64')).toBe(row)
})

test('texts that are longer than the kept buffers, and texts after them', () => {
  const long = JSON.stringify({ at: '2026-11-16T09:22:47.567Z', text: 'ä word '.repeat(40_000) })
  const words = JSON.stringify(Array.from({ length: 3_000 }, () => 'read_only write_high_risk'))
  for (const text of [long, words, words.slice(0, 400), long])
    expect(unpackText(packText(text))).toBe(text)
})

test('words are found by their first seven bytes, so none is shorter', () => {
  for (const word of words) expect(Buffer.byteLength(word)).toBeGreaterThanOrEqual(7)
})

test('a text that is no JSON stays a text', () => {
  for (const text of ['', 'a\nb'.repeat(20), '\0'.repeat(40), 'short'])
    expect(packText(text)).toBe(text)
})

test('an event takes less than half of its bytes', () => {
  const id = '01a1e231-01ba-71b4-9a33-d2e95748d0c4'
  const at = '2026-11-16T02:30:24.954Z'
  const event = { type: 'step_start', at, turnId: id, stepId: id, side: 'a', attempt: 1, epoch: 7 }
  const text = JSON.stringify(event)
  expect(packText(text).length).toBeLessThan(text.length / 3)
})

// Stored rows name words by their place: a word may be added at the end, with the new hash here.
test('no word has changed its place', () => {
  expect(words.length).toBeLessThanOrEqual(MAX_WORDS)
  expect(new Set(words).size).toBe(words.length)
  expect({ count: words.length, hash: sha256Hex(words.join('\n')).slice(0, 16) }).toEqual({
    count: 135,
    hash: '15f78ad789a7cd8a',
  })
})
