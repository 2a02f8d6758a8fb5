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
