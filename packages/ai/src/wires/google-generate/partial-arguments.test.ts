import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { JsonValue } from '@skein/base'
import { PartialArguments } from './partial-arguments.ts'
import type { PartialArgument } from './types.ts'

/** A value as the pieces a vendor would stream: strings in parts, in the order of the text. */
function pieces(value: JsonValue, path: string): PartialArgument[] {
  if (typeof value === 'string') {
    const half = Math.floor(value.length / 2)
    return [
      { jsonPath: path, stringValue: value.slice(0, half), willContinue: true },
      { jsonPath: path, stringValue: value.slice(half) },
    ]
  }
  if (typeof value === 'number') return [{ jsonPath: path, numberValue: value }]
  if (typeof value === 'boolean') return [{ jsonPath: path, boolValue: value }]
  if (value === null) return [{ jsonPath: path, nullValue: 'NULL_VALUE' }]
  if (Array.isArray(value)) return value.flatMap((item, i) => pieces(item, `${path}[${i}]`))
  return Object.entries(value).flatMap(([key, item]) =>
    pieces(item ?? null, `${path}[${quoted(key)}]`),
  )
}

const quoted = (key: string): string => `'${key.replace(/['\\]/g, '\\$&')}'`

test('the text is JSON of the streamed values, whatever they are', () => {
  // Empty objects and lists have no path of their own, so the vendor cannot stream them.
  const leaf = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.boolean(),
    fc.constant(null),
  )
  const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 3 },
      leaf,
      fc.array(tie('value'), { minLength: 1, maxLength: 3 }),
      fc.dictionary(fc.string(), tie('value'), { minKeys: 1, maxKeys: 3, noNullPrototype: true }),
    ),
  }))
  const root = fc.dictionary(fc.string(), value, { maxKeys: 4, noNullPrototype: true })
  fc.assert(
    fc.property(root, (args) => {
      const writer = new PartialArguments()
      const text =
        pieces(args, '$')
          .map((piece) => writer.write(piece))
          .join('') + writer.end()
      // -0 has no JSON of its own.
      expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(args)))
    }),
    { numRuns: process.env['SKEIN_DEEP'] ? 5000 : 200, seed: 5 },
  )
})

test('nothing streamed is an empty object', () => {
  expect(new PartialArguments().end()).toBe('{}')
})
