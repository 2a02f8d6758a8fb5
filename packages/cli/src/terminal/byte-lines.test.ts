import fc from 'fast-check'
import { expect, test } from 'vitest'
import { byteLines, TOO_LONG } from './byte-lines.ts'

async function* inChunks(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size)
}

async function linesOf(text: string, size: number, maxBytes: number): Promise<unknown[]> {
  const lines: unknown[] = []
  for await (const line of byteLines(inChunks(Buffer.from(text), size), maxBytes)) lines.push(line)
  return lines
}

test('the chunks do not change the lines, and a line over the limit is left out alone', async () => {
  const line = fc.string({ unit: 'binary', maxLength: 8 }).map((one) => one.replaceAll('\n', ''))
  await fc.assert(
    fc.asyncProperty(fc.array(line), fc.integer({ min: 1, max: 40 }), async (lines, size) => {
      const text = lines.map((one) => `${one}\n`).join('')
      const expected = lines.map((one) => (Buffer.byteLength(one) > 10 ? TOO_LONG : one))
      expect(await linesOf(text, size, 10)).toEqual(expected)
    }),
    { numRuns: 50 },
  )
})

test('the last line needs no line feed', async () => {
  expect(await linesOf('a\nbcd', 2, 3)).toEqual(['a', 'bcd'])
  expect(await linesOf('a\nbcde', 2, 3)).toEqual(['a', TOO_LONG])
})
