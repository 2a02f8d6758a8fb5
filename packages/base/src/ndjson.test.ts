import fc from 'fast-check'
import { expect, test } from 'vitest'
import { NdjsonDecoder } from '@skein/base'

const bytes = (text: string) => new TextEncoder().encode(text)

function decode(chunks: readonly Uint8Array[], options?: { maxLineBytes: number }): string[] {
  const decoder = new NdjsonDecoder(options)
  return [...chunks.flatMap((chunk) => decoder.push(chunk)), ...decoder.end()]
}

test('lines end with LF or CRLF; blank ones are left out; the last needs no end', () => {
  expect(decode([bytes('{"a":1}\r\n\n \t\r\n{"b":2}\n{"c":3}')])).toEqual([
    '{"a":1}',
    '{"b":2}',
    '{"c":3}',
  ])
})

test('a lone CR is white space of JSON, not a line end', () => {
  expect(decode([bytes('{"a":\r1}\n')])).toEqual(['{"a":\r1}'])
})

test('a line is delivered by the read that ends it, and a mark at the start is dropped', () => {
  const decoder = new NdjsonDecoder()
  expect(decoder.push(bytes('\ufeff{"a"'))).toEqual([])
  expect(decoder.push(bytes(':1}\n{'))).toEqual(['{"a":1}'])
  expect(decoder.end()).toEqual(['{'])
  expect(decoder.end()).toEqual([])
})

test('however the bytes are cut, the values come back', () => {
  fc.assert(
    fc.property(
      fc.array(fc.json({ stringUnit: 'grapheme' })),
      fc.constantFrom('\n', '\r\n', '\n\n'),
      fc.array(fc.nat(200)),
      (lines, end, places) => {
        const all = bytes(lines.join(end))
        const sorted = [0, ...places.toSorted((a, b) => a - b), all.length]
        const chunks = sorted.slice(1).map((place, i) => all.subarray(sorted[i], place))
        expect(decode(chunks)).toEqual(lines)
      },
    ),
    { numRuns: process.env['SKEIN_DEEP'] ? 10_000 : 300, seed: 7464 },
  )
})

test('a line over maxLineBytes throws, however it is cut, after the lines before it', () => {
  const tooLong = expect.objectContaining({ code: 'NDJSON_LINE_TOO_LONG' })
  const options = { maxLineBytes: 8 }
  expect(decode([bytes('12345678\n1234\n')], options)).toEqual(['12345678', '1234'])
  expect(() => decode([bytes('žžžžž\n')], options)).toThrow(tooLong)
  expect(() => decode([bytes('12345'), bytes('6789')], options)).toThrow(tooLong)
  const decoder = new NdjsonDecoder(options)
  expect(decoder.push(bytes('1\n123456789\n2\n'))).toEqual(['1'])
  expect(() => decoder.push(bytes('3\n'))).toThrow(tooLong)
})
