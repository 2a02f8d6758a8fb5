import type { JsonSchema } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { NullFilter } from './null-filter.ts'
import { withoutNulls } from './strict-nulls.ts'

/** Filters a text in pieces of a size, and returns the pieces that came out. */
function pieces(schema: JsonSchema, text: string, size: number): string[] {
  const filter = new NullFilter(schema)
  const out: string[] = []
  for (let at = 0; at < text.length; at += size) out.push(filter.push(text.slice(at, at + size)))
  return [...out, filter.end()]
}

const optional: JsonSchema = {
  type: 'object',
  properties: {
    a: { type: 'number' },
    b: { type: 'string' },
    c: { type: ['string', 'null'] },
    inner: { $ref: '#/$defs/inner' },
    list: { type: 'array', items: { anyOf: [{ $ref: '#/$defs/inner' }, { type: 'null' }] } },
    pet: {
      anyOf: [
        { type: 'object', properties: { kind: { const: 'cat' }, lives: { type: 'number' } }, required: ['kind'] }, // prettier-ignore
        { type: 'object', properties: { kind: { const: 'dog' }, lives: { type: ['number', 'null'] } }, required: ['kind'] }, // prettier-ignore
      ],
    },
  },
  required: ['a'],
  $defs: { inner: { type: 'object', properties: { x: { type: 'string' }, y: { type: 'null' } } } },
}

describe('the text of a structured answer', () => {
  test.each([
    ['{"a":1,"b":null}', '{"a":1}'],
    ['{"b":null,"a":1}', '{"a":1}'],
    ['{ "b" : null , "a" : 1 }', '{   "a" : 1 }'],
    ['{"b":null}', '{}'],
    ['{"b":null,"c":null,"a":1}', '{"c":null,"a":1}'],
    ['{"a":1,"b":"null","c":"a\\"null"}', '{"a":1,"b":"null","c":"a\\"null"}'],
    ['{"a":1,"inner":{"x":null,"y":null}}', '{"a":1,"inner":{"y":null}}'],
    ['{"a":1,"list":[{"x":null},null,{"x":"1"}]}', '{"a":1,"list":[{},null,{"x":"1"}]}'],
    ['{"a":1,"pet":{"lives":null,"kind":"cat"}}', '{"a":1,"pet":{"kind":"cat"}}'],
    ['{"a":1,"pet":{"lives":null,"kind":"dog"}}', '{"a":1,"pet":{"lives":null,"kind":"dog"}}'],
    ['{"a":1,"more":{"b":null}}', '{"a":1,"more":{"b":null}}'],
    ['{"a":null}', '{"a":null}'],
  ])('%s is %s, however it is cut', (text, expected) => {
    for (const size of [1, 2, 3, 5, 100])
      expect(pieces(optional, text, size).join(''), `${size}`).toBe(expected)
    const data: unknown = JSON.parse(expected)
    expect(data).toEqual(withoutNulls(optional, JSON.parse(text)))
  })

  test.each([
    '',
    'Sorry, no.',
    '{"a":1,"b"',
    '{"a":1,"b":nul',
    '{"a":1,]',
    '[1,2] and more',
    '{"a":tru3}',
    '{"a"1}',
    '12',
    '{"pet":{"lives":null',
  ])('%s passes unchanged', (text) => {
    // prettier-ignore
    for (const size of [1, 4]) expect(pieces(optional, text, size).join('')).toBe(text)
  })

  test('what does not have to wait does not', () => {
    expect(pieces(optional, '{"a":1,"c":"long text"', 4)).toEqual([
      '{',
      '"a":1',
      ',"c":"',
      'long',
      ' tex',
      't"',
      '',
    ])
  })
})
