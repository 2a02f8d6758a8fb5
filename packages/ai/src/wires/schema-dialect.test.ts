import { describe, expect, test } from 'vitest'
import { toDialect } from './schema-dialect.ts'
import { isStrictSchema } from './strict-schema.ts'

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
  ])('%j is wrapped: %s', (schema, isWrapped) => {
    expect(toDialect(schema, { objectRoot: true }).isWrapped).toBe(isWrapped)
  })

  test('leaves out what a vendor rejects, by place, and never a property of that name', () => {
    const schema = {
      type: 'object',
      properties: { minLength: { type: 'string', minLength: 1 } },
      default: { minLength: 2 },
    }
    const { schema: fitted, warnings } = toDialect(schema, { rejected: new Set(['minLength']) })
    expect(fitted).toEqual({
      type: 'object',
      properties: { minLength: { type: 'string' } },
      default: { minLength: 2 },
    })
    expect(warnings).toMatchObject([{ pointer: '/properties/minLength/minLength' }])
  })

  test('closes objects where the vendor asks for it', () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'object' } },
      additionalProperties: {},
    }
    const { schema: fitted, warnings } = toDialect(schema, { closedObjects: true })
    expect(fitted).toMatchObject({
      additionalProperties: {},
      properties: { a: { additionalProperties: false } },
    })
    expect(warnings).toHaveLength(1)
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
