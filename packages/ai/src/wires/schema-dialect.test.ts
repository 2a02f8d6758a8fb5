import type { JsonSchema } from '@skein/base'
import { describe, expect, test } from 'vitest'
import { toAnthropicSchema } from './anthropic-schema.ts'
import { toDialect } from './schema-dialect.ts'
import { unwrapValue } from './unwrap-value.ts'
import { isStrictSchema } from './strict-check.ts'

describe('toDialect', () => {
  test('keeps a whole schema as it is', () => {
    const schema = {
      $defs: { node: { type: 'object', properties: { next: { $ref: '#/$defs/node' } } } },
      anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }],
      description: 'd',
      'x-own': 1,
    }
    expect(toDialect(schema, {}).schema).toBe(schema)
  })

  test('wraps roots that are not objects, and moves pointers along', () => {
    const schema = {
      type: 'array',
      items: { anyOf: [{ $ref: '#' }, { $ref: '#/$defs/leaf' }, { $ref: '#/items' }] },
      $defs: { leaf: { type: 'string' } },
    }
    const { schema: wrapped, isWrapped } = toDialect(schema, { objectRoot: true })
    expect(isWrapped).toBe(true)
    expect(wrapped).toEqual({
      type: 'object',
      properties: {
        value: {
          type: 'array',
          items: {
            anyOf: [
              { $ref: '#/properties/value' },
              { $ref: '#/$defs/leaf' },
              { $ref: '#/properties/value/items' },
            ],
          },
        },
      },
      required: ['value'],
      additionalProperties: false,
      $defs: { leaf: { type: 'string' } },
    })
  })

  test.each([
    [{ type: 'object' }, false],
    [{ properties: {} }, false],
    [{ enum: ['a'] }, true],
    [{ anyOf: [{ type: 'object' }] }, true],
    [{ $ref: '#/$defs/a', $defs: {} }, true],
    [{ type: ['object', 'null'] }, true],
    [{ items: { type: 'string' } }, true],
    [{ const: 1 }, true],
    [{ oneOf: [] }, true],
  ])('%j is wrapped: %s', (schema, isWrapped) => {
    expect(toDialect(schema, { objectRoot: true }).isWrapped).toBe(isWrapped)
  })
})

describe('toAnthropicSchema', () => {
  test('leaves out what the API rejects, by place, and never a property of that name', () => {
    const schema = {
      type: 'object',
      properties: { minLength: { type: 'string', minLength: 1 } },
      default: { minLength: 2 },
      additionalProperties: false,
    }
    const { schema: fitted, warnings, isNative } = toAnthropicSchema(schema)
    expect(isNative).toBe(true)
    expect(fitted).toEqual({
      type: 'object',
      properties: { minLength: { type: 'string' } },
      default: { minLength: 2 },
      additionalProperties: false,
    })
    expect(warnings).toMatchObject([{ pointer: '/structure/properties/minLength/minLength' }])
  })

  test('UPP-147 closes objects wherever a schema has them', () => {
    const open = { type: 'object', properties: { a: { type: 'string' } } }
    const closed = { ...open, additionalProperties: false }
    const fit = (part: (one: JsonSchema) => object): unknown => {
      const properties = { part: part(open) }
      return toAnthropicSchema({ type: 'object', properties, additionalProperties: false }).schema
    }
    const places: ((one: JsonSchema) => object)[] = [
      (one) => one,
      (items) => ({ type: 'array', items }),
      (items) => ({ type: 'array', items: { type: 'array', items } }),
      (one) => ({ anyOf: [{ type: 'null' }, one] }),
      (one) => ({ allOf: [one] }),
      (inner) => ({ type: 'object', additionalProperties: false, properties: { inner } }),
    ]
    for (const part of places)
      expect(fit(part)).toEqual({
        type: 'object',
        properties: { part: part(closed) },
        additionalProperties: false,
      })
  })

  test('UPP-147 oneOf is written as anyOf, unless the schema has both', () => {
    const [a, b] = [[{ type: 'string' }], [{ type: 'null' }]]
    const fit = (part: JsonSchema): unknown => {
      const schema = { type: 'object', properties: { part }, additionalProperties: false }
      return (toAnthropicSchema(schema).schema['properties'] as { part: unknown }).part
    }
    expect(fit({ oneOf: a })).toEqual({ anyOf: a })
    expect(fit({ anyOf: a })).toEqual({ anyOf: a })
    expect(fit({ anyOf: a, oneOf: b })).toEqual({ anyOf: a, oneOf: b })
    expect(fit({ oneOf: b, anyOf: a })).toEqual({ anyOf: a, oneOf: b })
  })

  test('closes objects that say nothing about further members', () => {
    const schema = { type: 'object', properties: { a: { type: 'object', properties: {} } } }
    const { schema: fitted, warnings } = toAnthropicSchema(schema)
    expect(fitted).toMatchObject({
      additionalProperties: false,
      properties: { a: { additionalProperties: false } },
    })
    expect(warnings.map(({ pointer }) => pointer)).toEqual([
      '/structure/properties/a',
      '/structure',
    ])
  })

  test.each<[string, JsonSchema, string]>([
    ['members of any name', { a: { additionalProperties: {} } }, '/a/additionalProperties'],
    ['an open object', { a: { additionalProperties: true } }, '/a/additionalProperties'],
    ['any object', { a: { type: 'object' } }, '/a'],
    ['members by pattern', { a: { patternProperties: {} } }, '/a/patternProperties'],
    ['a tuple', { a: { type: 'array', items: [{ type: 'string' }] } }, '/a/items'],
    ['a tuple of 2020-12', { a: { type: 'array', prefixItems: [] } }, '/a/prefixItems'],
    ['any value', { a: true }, '/a'],
    ['objects as values', { a: { enum: [{}] } }, '/a'],
    ['itself', { a: { $ref: '#' } }, '/a/$ref'],
    ['itself, by a detour', { a: { $ref: '#/$defs/b' } }, '/a/$ref'],
  ])('%s cannot be expressed', (_, properties, pointer) => {
    const $defs = { b: { anyOf: [{ $ref: '#/$defs/c' }] }, c: { $ref: '#/$defs/b' } }
    const schema = { type: 'object', properties, $defs, additionalProperties: false }
    const { isNative, warnings, schema: told } = toAnthropicSchema(schema)
    expect(isNative).toBe(false)
    expect(told).toBe(schema)
    expect(warnings).toContainEqual(
      expect.objectContaining({
        code: 'structure_not_enforced',
        pointer: `/structure/properties${pointer}`,
      }),
    )
  })

  test('a shared part that does not lead back to itself is no recursion', () => {
    const part = { $ref: '#/$defs/s' }
    const schema = {
      type: 'object',
      properties: { a: part, b: part },
      additionalProperties: false,
      $defs: { s: { type: 'string' } },
    }
    expect(toAnthropicSchema(schema)).toMatchObject({ isNative: true, warnings: [] })
  })
})

describe('isStrictSchema', () => {
  const strict = {
    type: 'object',
    properties: {
      name: { type: ['string', 'null'], pattern: '^a' },
      list: { type: 'array', items: { $ref: '#/$defs/item' }, maxItems: 3 },
    },
    required: ['name', 'list'],
    additionalProperties: false,
    $defs: { item: { anyOf: [{ type: 'string' }, { type: 'number' }] } },
  }

  test('a schema that meets all conditions', () => expect(isStrictSchema(strict)).toBe(true))

  test.each([
    ['an optional property', { ...strict, required: ['name'] }],
    ['an open object', { ...strict, additionalProperties: true }],
    ['nothing said about it', { type: 'object', properties: {}, required: [] }],
    ['an unsupported keyword', { ...strict, allOf: [] }],
    [
      'an open object inside',
      { ...strict, $defs: { item: { type: 'object', properties: {}, required: [] } } },
    ],
    ['a tuple', { ...strict, $defs: { item: { type: 'array', items: [{ type: 'string' }] } } }],
    ['an array of anything', { ...strict, $defs: { item: { type: 'array' } } }],
    ['anything at all', { ...strict, $defs: { item: {} } }],
    ['a boolean schema', { ...strict, $defs: { item: true } }],
    ['a root union', { ...strict, anyOf: [] }],
    ['a root array', { type: 'array', items: { type: 'string' } }],
  ])('not with %s', (_, schema) => expect(isStrictSchema(schema)).toBe(false))
})

describe('unwrapValue', () => {
  const texts = ['"a b  }c"', '{"a":{"b":" } "}}', '[1, 2 ]', '"}"', '7', '" "']
  test.each(texts)('UPP-147 UPP-124 %s comes out whole, wherever the text is cut', (text) => {
    const wrapped = ` { "value" :  ${text} }\n`
    for (let first = 0; first <= wrapped.length; first++)
      for (let second = first; second <= wrapped.length; second++) {
        const { push, end } = unwrapValue()
        const pieces = [
          wrapped.slice(0, first),
          wrapped.slice(first, second),
          wrapped.slice(second),
        ]
        const shown = [...pieces.map(push), end()].join('')
        expect(JSON.parse(shown), pieces.join('|')).toEqual(JSON.parse(text))
      }
  })
})
